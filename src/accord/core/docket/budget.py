"""What an item may cost, and how long it may wait."""

from accord.core.docket.words import Domain, Level

# Minutes, and the complexity tax, that an item of this impact may cost.
TIMEBOX: dict[Level, int] = {Level.LOW: 20, Level.MED: 60, Level.HIGH: 120}
COMPLEXITY: dict[Level, int] = {Level.LOW: 3, Level.MED: 5, Level.HIGH: 7}
MOST_STEPS = 5
MOST_DEBT = 2

# Days that a parked item waits, by its domain; by none where nobody said which.
EXPIRES: dict[Domain | None, int] = {
    Domain.CHAOTIC: 1,
    Domain.PROBABILISTIC: 7,
    Domain.COMPLEX: 60,
    Domain.DETERMINISTIC: 365,
    None: 30,
}
