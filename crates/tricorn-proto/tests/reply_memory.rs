//! What replies allocate: counted by the allocator, in a process of its own.
#![allow(clippy::unwrap_used)] // A test may panic.
#[path = "support/response.rs"]
mod response;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tricorn_proto::message::{Method, Version};
use tricorn_proto::response::{End, HeadInputs, Reply};

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator; only a number is kept, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised us.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as the caller promised us.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A reply with three fields, a body in two pieces and a trailer, where there is room for it.
fn answer(reply: &mut Reply, out: &mut Vec<u8>, body_length: Option<u64>) -> End {
    out.clear();
    reply.begin(Method::Get, Version::Http11, true);
    reply.set_request_id(b"0af7651916cd43dd");
    reply.status(b"200 OK").unwrap();
    for (name, value) in
        [("Content-Type", "text/plain; charset=utf-8"), ("Vary", "Accept"), ("X-Frame-Options", "DENY")]
    {
        reply.field(name.as_bytes(), value.as_bytes()).unwrap();
    }
    let inputs = HeadInputs {
        date: b"Sat, 21 Nov 2026 01:02:32 GMT",
        server: b"tricorn",
        body_length,
        close: false,
        ..HeadInputs::default()
    };
    response::head(reply, out, &inputs);
    for _ in 0..2 {
        let (length, after) = response::piece(reply, out, 5);
        out.extend_from_slice(&b"hello"[..length as usize]);
        out.extend_from_slice(after);
    }
    reply.trailer(b"X-Sum", b"5").unwrap();
    response::end(reply, out)
}

#[test]
fn a_reply_like_the_one_before_allocates_nothing() {
    for body_length in [Some(10), None] {
        let (mut reply, mut out) = (Reply::default(), Vec::new());
        assert_eq!(answer(&mut reply, &mut out, body_length), End::Reuse);
        let calls = CALLS.get();
        let first = out.clone();
        assert_eq!(CALLS.get() - calls, 1, "allocations are counted");
        assert_eq!(answer(&mut reply, &mut out, body_length), End::Reuse);
        assert_eq!(CALLS.get() - calls, 1, "{body_length:?}");
        assert_eq!(out, first);
    }
}
