"""A page that counts and is told the time, takes files and sends some."""

from __future__ import annotations

from nicegui import events, ui


@ui.page("/")
def index() -> None:
    count = 0
    label = ui.label("clicked 0 times")
    ticks = ui.label("ticks 0")

    def click() -> None:
        nonlocal count
        count += 1
        label.text = f"clicked {count} times"

    def tick() -> None:
        ticks.text = f"ticks {int(ticks.text.split()[1]) + 1}"

    async def uploaded(event: events.UploadEventArguments) -> None:
        label.text = f"got {len(await event.file.read())} bytes"

    ui.button("click me", on_click=click)
    ui.button("file", on_click=lambda: ui.download.file(__file__))
    ui.button("content", on_click=lambda: ui.download.content(b"downloaded" * 50_000, "file.bin"))
    ui.upload(on_upload=uploaded, auto_upload=True)
    ui.timer(0.05, tick)
