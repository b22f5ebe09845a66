"""What a language model takes for each token, in words; the terminal and the page of a run show the same."""

from tilewright.report.quantities import byte_size, engineering, joules, seconds_of, significant
from tilewright.store import TokensRecord


def token_lines(record: TokensRecord | None, frequency_mhz: float, *, bound: bool = False,
                ) -> tuple[tuple[str, str], ...]:
    """Return lines with their heads: tokens a second, what each takes, what a pass reads, and which roof is the lower.

    Nothing where the network is no language model; ``bound`` says that the figures are the least of any mapping.
    """
    if record is None:
        return ()
    time = engineering(seconds_of(record.latency_cycles, frequency_mhz), "s")
    least = "at least " if bound else ""
    cache = record.cache_read_bytes or record.cache_written_bytes
    kept = (f" and {byte_size(record.cache_read_bytes)} of cached keys and values, and appends "
            f"{byte_size(record.cache_written_bytes)}") if cache else ""
    return (
        ("Tokens", f"{'at most ' if bound else ''}{significant(record.tokens_per_second)} tokens/s: {least}{time} and "
                   f"{engineering(joules(record.energy_pj), 'J')} a token, for {engineering(record.macs)} MACs; "
                   f"{record.tokens:,} a pass"),
        ("Pass", f"reads {byte_size(record.weight_bytes)} of weights{kept}"),
        ("Roof", _roof(record)),
    )


def _roof(record: TokensRecord) -> str:
    """Say which of compute and the outermost memory holds the layers back, and by how much."""
    name, memory, compute = record.memory, record.memory_cycles, record.compute_cycles
    if memory is None:
        return f"compute-bound: the bandwidth of {name} is unlimited"
    if memory > compute:
        return f"memory-bound: {name} holds it {significant(memory / compute)}x below the compute roof"
    return f"compute-bound: {name} could feed {significant(compute / memory)}x as many MAC units"
