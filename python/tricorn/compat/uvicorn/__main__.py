"""`python -m uvicorn`, where every name is ours."""

from __future__ import annotations

from .main import main

if __name__ == "__main__":
    main()
