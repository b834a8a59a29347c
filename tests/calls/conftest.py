from tests.state.conftest import hands, place, store

__all__ = ["hands", "place", "store"]
