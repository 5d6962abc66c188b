"""The same application under a shorter name: `tricorn examples.flask_hello:app`, from the root of the checkout."""

from examples.flask_hello.app import app

__all__ = ["app"]
