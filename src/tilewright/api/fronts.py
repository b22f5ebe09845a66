"""Pareto fronts between searches and records."""

from tilewright.search import Front, FrontPoint
from tilewright.store import FrontPointRecord, FrontRecord, LayerRecord, level_records, mapping_from


def front_record(front: Front | None) -> FrontRecord | None:
    """Return the record of a front."""
    if front is None:
        return None
    points = (FrontPointRecord(point.values, level_records(point.mapping)) for point in front.points)
    return FrontRecord(front.metrics, front.units, tuple(points), front.thinned)


def front_of(layer: LayerRecord) -> Front | None:
    """Return the front of a layer with its mappings, None where none was asked for."""
    if layer.front is None:
        return None
    points = (FrontPoint(point.values, mapping_from(point)) for point in layer.front.points)
    return Front(layer.front.metrics, tuple(points), layer.front.thinned)
