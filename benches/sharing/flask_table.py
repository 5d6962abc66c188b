"""Flask with SQLAlchemy, and a table of 200 MB in memory, of which each request reads some rows."""

from __future__ import annotations

import itertools

from flask import Flask, jsonify
from flask.wrappers import Response
from sqlalchemy import create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ROWS = 650_000
app = Flask(__name__)
engine = create_engine("sqlite://")
count = itertools.count()


class Base(DeclarativeBase):
    pass


class Article(Base):
    __tablename__ = "articles"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    price: Mapped[float]


Base.metadata.create_all(engine)
with engine.connect() as connection:
    connection.execute(text("select 1"))
engine.dispose()

table = {f"article {number}": (number, f"name of article {number}", number / 3) for number in range(ROWS)}


@app.route("/")
def articles() -> Response:
    first = next(count) * 97 % ROWS
    return jsonify([table[f"article {(first + number * 1009) % ROWS}"] for number in range(20)])
