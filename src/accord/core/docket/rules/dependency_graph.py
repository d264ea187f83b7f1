"""Dependencies among the items of a batch: their order and their cycles."""

from collections.abc import Iterator, Mapping, Sequence

Edges = Mapping[str, Sequence[str]]


def strongly_connected_components(edges: Edges) -> Iterator[list[str]]:
    """Strongly connected components, dependencies first; independent of the input order."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in sorted(edges):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(sorted(edges[root])))]
        while work:
            node, rest = work[-1]
            for each in rest:
                if each not in index:
                    index[each] = low[each] = len(index)
                    stack.append(each)
                    on_stack.add(each)
                    work.append((each, iter(sorted(edges[each]))))
                    break
                if each in on_stack:
                    low[node] = min(low[node], index[each])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == index[node]:
                    yield _pop_component(stack, on_stack, node)


def _pop_component(stack: list[str], on_stack: set[str], until: str) -> list[str]:
    found: list[str] = []
    while not found or found[-1] != until:
        found.append(stack.pop())
        on_stack.discard(found[-1])
    return found


def cycle_members(edges: Edges) -> dict[str, str]:
    """Every item in a cycle, with its first dependency inside the cycle."""
    found: dict[str, str] = {}
    for group in strongly_connected_components(edges):
        inside = set(group)
        if len(group) == 1 and group[0] not in edges[group[0]]:
            continue
        for name in group:
            found[name] = next(each for each in edges[name] if each in inside)
    return found


def dependency_order(everything: Edges, binding: Edges) -> Iterator[str]:
    """Each item after its dependencies; waived edges count only where they make no cycle."""
    for group in strongly_connected_components(everything):
        inside = set(group)
        near = {name: [each for each in binding[name] if each in inside] for name in group}
        for part in strongly_connected_components(near):
            yield from sorted(part)
