"""FastAPI with pydantic: forty models and routes, one of which is asked for."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, create_model

app = FastAPI()


class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []


def add(number: int) -> None:
    fields: dict[str, Any] = {f"field_{each}": (list[Item] | None, None) for each in range(10)}
    model = create_model(f"Order{number}", **fields)

    async def order(given: model) -> model:  # type: ignore[valid-type]
        return given

    order.__annotations__ = {"given": model, "return": model}
    app.post(f"/orders/{number}", response_model=model)(order)


for each in range(40):
    add(each)


@app.get("/")
async def items() -> list[Item]:
    return [Item(name=f"item {number}", price=number / 3, tags=["a", "b"]) for number in range(20)]
