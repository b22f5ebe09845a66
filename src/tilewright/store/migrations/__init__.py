"""How stores of older schemas are lifted to the present one, in place, with Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection


def lift(connection: Connection, schema: int) -> None:
    """Lift the database of a connection, which is at ``schema`` (0: empty), to the newest, in its transaction."""
    config = Config()
    # A percent sign is special in Alembic's options.
    place = str(Path(__file__).parent).replace("%", "%%")
    config.set_main_option("script_location", place)
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    if schema == 1:
        # Stores of schema 1 are older than Alembic's own table.
        command.stamp(config, "1")
    command.upgrade(config, "head")
