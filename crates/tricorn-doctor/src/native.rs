//! Unwinds the native stack of a thread that waits in the kernel, from its stack pointer and program counter.
//!
//! ```text
//!   /proc/PID/task/TID/syscall ── SP, PC ──▶ unwind by CFI (framehop) ── a frame whose rule needs a register that is unknown ──┐
//!                                               ▲                                                                          │
//!                                               └── the next word that a call may have pushed (`certain: false`) ◀── scan ─┘
//! ```
//!
//! Other registers than SP and PC are unknown without ptrace(2). The kernel entry is in a function of libc that needs none of
//! them, and what a function saved on its stack is known from there on. Where that ends, words of the stack that point behind a
//! call instruction are tried: some of them are left over from calls that are long over.
//!
//! Every walk ends: by the number of frames, by the size of the stack, and since each step goes up.
use crate::images::Images;
use crate::maps::FileId;
use crate::memory::Memory;
use framehop::{FrameAddress, Unwinder};
use std::collections::HashSet;
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Engine};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Engine};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame {
    pub address: u64,
    /// Whether the address is a return address, behind the call instruction.
    pub is_return: bool,
    /// Whether it was unwound; otherwise it was found by scanning and may be left over.
    pub certain: bool,
}

impl RawFrame {
    /// Returns an address inside the instruction, for lookups in tables.
    pub fn lookup(&self) -> u64 {
        if self.is_return { self.address.wrapping_sub(1) } else { self.address }
    }
}

/// Registers of a thread that stands still.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    pub program: u64,
    pub stack: u64,
    /// Frame pointer, and on aarch64 link register. `None`: unknown.
    pub frame: Option<u64>,
    pub link: Option<u64>,
}

impl Standing {
    /// Makes registers from what the kernel shows of a thread in a system call.
    pub fn entered(stack: u64, program: u64) -> Self {
        Self { program, stack, ..Self::default() }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Default)]
pub struct Stacks {
    engine: Engine<Arc<[u8]>>,
    cache: Cache,
    /// Files that the engine knows, by the start of their code.
    known: HashSet<(FileId, u64)>,
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Stacks {
    /// Unwinds a stack, innermost frame first. `stack` was copied while the thread had these registers.
    pub fn walk(&mut self, memory: &Memory, images: &mut Images, mut stack: Stack, at: Standing) -> Vec<RawFrame> {
        let pc = at.program;
        let mut registers = first(&at);
        let mut frames = vec![RawFrame { address: pc, is_return: false, certain: true }];
        let mut at = FrameAddress::InstructionPointer(pc);
        let mut certain = true;
        while frames.len() < MOST_FRAMES && stack.steps < MOST_STEPS {
            self.learn(images, at.address_for_lookup());
            let before = stack_pointer(&registers);
            let next =
                self.engine.unwind_frame(at, &mut registers, &mut self.cache, &mut |address| stack.word(address));
            let goes_on = |address: &u64| {
                (stack_pointer(&registers) > before || frames.len() == 1) && images.is_code(address.wrapping_sub(1))
            };
            let address = match next {
                // The tables say that nothing called this function: it is a thread's first.
                Ok(None) => break,
                Ok(Some(address)) if goes_on(&address) => address,
                _ => {
                    let Some((place, address)) = stack.next_call(memory, images, before) else { break };
                    // A function with a frame pointer saves its caller's just below the return address.
                    let below = stack.word(place - 8).ok().filter(|&below| below != 0).unwrap_or(UNKNOWN);
                    registers = self::registers(address, place + 8, below);
                    certain = false;
                    address
                }
            };
            frames.push(RawFrame { address, is_return: true, certain });
            let Some(return_address) = FrameAddress::from_return_address(address) else { break };
            at = return_address;
        }
        frames
    }

    /// Reads the unwind tables of the file at an address, once.
    fn learn(&mut self, images: &mut Images, address: u64) {
        let Some(mapping) = images.maps().find(address) else { return };
        if !mapping.is_file() || !self.known.insert((mapping.file, mapping.start)) {
            return;
        }
        if let Some(module) = images.module(address) {
            self.engine.add_module(module);
        }
    }
}

/// Other processors: there are no native stacks.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Default)]
pub struct Stacks;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Stacks {
    pub fn walk(&mut self, _: &Memory, _: &mut Images, _: Stack, _: Standing) -> Vec<RawFrame> {
        Vec::new()
    }
}

/// At the entry of the kernel neither the frame pointer nor the link register of aarch64 is told.
#[cfg(target_arch = "x86_64")]
fn first(at: &Standing) -> Registers {
    Registers::new(at.program, at.stack, at.frame.unwrap_or(UNKNOWN))
}

#[cfg(target_arch = "aarch64")]
fn first(at: &Standing) -> Registers {
    Registers::new(at.link.unwrap_or(0), at.stack, at.frame.unwrap_or(UNKNOWN))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn registers(pc: u64, sp: u64, frame: u64) -> Registers {
    Registers::new(pc, sp, frame)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn stack_pointer(registers: &Registers) -> u64 {
    registers.sp()
}

/// A copy of a part of the stack, from the stack pointer up.
pub struct Stack {
    start: u64,
    bytes: Vec<u8>,
    steps: usize,
}

impl Stack {
    pub fn copy(memory: &Memory, sp: u64) -> Self {
        let start = sp & !7;
        let mut bytes = Vec::new();
        // The stack may end within any of the pieces, and what is above it need not be mapped.
        while bytes.len() < MOST_BYTES {
            let piece = memory.up_to(start + bytes.len() as u64, PIECE);
            let is_short = piece.len() < PIECE;
            bytes.extend(piece);
            if is_short {
                break;
            }
        }
        Self { start, bytes, steps: 0 }
    }

    fn word(&mut self, address: u64) -> Result<u64, ()> {
        self.steps += 1;
        let place = usize::try_from(address.checked_sub(self.start).ok_or(())?).map_err(drop)?;
        let bytes = self.bytes.get(place..place.checked_add(8).ok_or(())?).ok_or(())?;
        bytes.try_into().map(u64::from_ne_bytes).map_err(drop)
    }

    /// The next word above that a call may have pushed: its place, and the return address.
    fn next_call(&mut self, memory: &Memory, images: &Images, from: u64) -> Option<(u64, u64)> {
        let mut place = from.max(self.start).checked_add(7)? & !7;
        let limit = place + MOST_BYTES as u64;
        while place < limit && self.steps < MOST_STEPS {
            let value = self.word(place).ok()?;
            if images.is_code(value.wrapping_sub(1)) && follows_call(memory, value) {
                return Some((place, value));
            }
            place += 8;
        }
        None
    }
}

/// Whether the instruction before this address is a call.
#[cfg(target_arch = "x86_64")]
fn follows_call(memory: &Memory, address: u64) -> bool {
    memory.bytes::<7>(address.wrapping_sub(7)).is_some_and(ends_in_call)
}

/// `call rel32` is E8; `call r/m64` is FF with 2 in the middle of its second byte, and 2 to 7 bytes long.
#[cfg(target_arch = "x86_64")]
fn ends_in_call(bytes: [u8; 7]) -> bool {
    let indirect = |length: usize| {
        let (opcode, operand) = (bytes[7 - length], bytes[8 - length]);
        let (mode, middle, base) = (operand >> 6, operand >> 3 & 7, operand & 7);
        let sib = usize::from(mode != 3 && base == 4);
        let displacement = match mode {
            0 if base == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        opcode == 0xff && middle == 2 && length == 2 + sib + displacement
    };
    bytes[2] == 0xe8 || (2..=7).any(indirect)
}

/// BL, or BLR with any register.
#[cfg(target_arch = "aarch64")]
fn follows_call(memory: &Memory, address: u64) -> bool {
    let Some(bytes) = memory.bytes::<4>(address.wrapping_sub(4)) else { return false };
    let word = u32::from_le_bytes(bytes);
    word >> 26 == 0b100101 || word & 0xffff_fc1f == 0xd63f_0000
}

/// A frame pointer that no stack can have: 0 would mean that there is no caller.
const UNKNOWN: u64 = 8;

const MOST_FRAMES: usize = 256;
const MOST_STEPS: usize = 1 << 18;
const PIECE: usize = 32 << 10;
const MOST_BYTES: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_are_known_by_their_bytes() {
        let yes: [&[u8]; 6] = [
            &[0xe8, 1, 2, 3, 4],             // call rel32
            &[0xff, 0xd0],                   // call rax
            &[0x41, 0xff, 0xd4],             // call r12
            &[0xff, 0x50, 0x10],             // call [rax+16]
            &[0xff, 0x15, 1, 2, 3, 4],       // call [rip+…]
            &[0xff, 0x94, 0x24, 1, 2, 3, 4], // call [rsp+…]
        ];
        let no: [&[u8]; 4] = [&[0xff, 0xe0], &[0xc3], &[0x90, 0x90], &[0xff, 0x60, 0x10]]; // jmp, ret, nop, jmp
        let padded = |code: &[u8]| {
            let mut bytes = [0x90; 7];
            bytes[7 - code.len()..].copy_from_slice(code);
            ends_in_call(bytes)
        };
        assert!(yes.iter().all(|code| padded(code)));
        assert!(!no.iter().any(|code| padded(code)));
    }

    #[test]
    fn words_outside_the_copy_are_errors_whatever_the_address() {
        let mut stack = Stack { start: 0x1000, bytes: vec![1; 16], steps: 0 };
        assert!(stack.word(0x1008).is_ok());
        for address in [0xff8, 0x1009, 0x1010, u64::MAX, u64::MAX - 7, 0] {
            assert!(stack.word(address).is_err(), "{address:x}");
        }
    }
}
