"""What the checker of plans says against one, or cannot judge"""

from kafkadash.domain.refusals.entry import Entry
from kafkadash.domain.refusals.planning import REPORT

ROW_TWICE = Entry("row-twice", "{row} is in the plan twice.", REPORT)
ROW_OF_NOTHING = Entry("row-of-nothing", "There is no partition {row}.", REPORT)
ROW_OF_NAMESAKE = Entry("row-of-namesake", "{row} is of another topic of that name.", REPORT)
ROW_ELSEWHERE = Entry("row-elsewhere", "{row} is on {there}; the plan expects {expected}.", REPORT)
ROW_CHANGES_DISK = Entry(
    "row-changes-disk",
    "{row} would stay on broker {broker} and move to {path}; disk moves are not run here.",
    REPORT,
)
ROW_CHANGES_NOTHING = Entry("row-changes-nothing", "{row} changes nothing.", REPORT)
ROW_MOVES_ALREADY = Entry("row-moves-already", "{row} is being reassigned already.", REPORT)
ROW_WITH_OTHER_FACTOR = Entry("row-with-other-factor", "{row} would have {after} replicas instead of {before}.", REPORT)
ROW_WITHOUT_REPLICAS = Entry("row-without-replicas", "{row} would have no replicas.", REPORT)
ROW_TWICE_ON_ONE = Entry("row-twice-on-one", "{row} would have two replicas on one broker: {brokers}.", REPORT)
ROW_ON_INELIGIBLE = Entry(
    "row-on-ineligible", "{row} would get a replica on broker {broker}, which cannot be given any.", REPORT
)
ROW_LEAVES_OTHERS = Entry("row-leaves-others", "{row} would leave {brokers}, which is not drained.", REPORT)
ROW_ON_DRAINED = Entry("row-on-drained", "{row} would be on {brokers}, which is drained.", REPORT)
ROW_ON_LEFT_OUT = Entry("row-on-left-out", "{row} would go to {brokers}, which is left out.", REPORT)
ROW_NOT_ASKED_FOR = Entry("row-not-asked-for", "{row} has no replica on a drained broker.", REPORT)
ROW_REORDERED = Entry("row-reordered", "{row} would change the order of the replicas that stay.", REPORT)
ROW_IN_FEWER_RACKS = Entry("row-in-fewer-racks", "{row} would be in {after} instead of {before}.", REPORT)
ROW_UNEVEN = Entry("row-uneven", "{row} would have {held} replicas in rack {rack} and {fewer} in {other}.", REPORT)
BROKER_NOT_EMPTY = Entry("broker-not-empty", "Broker {broker} would keep {replicas}.", REPORT)
ROW_OUTSIDE = Entry("row-outside", "{row} is none of the partitions that were to be planned.", REPORT)
ROW_TAKES_WHAT_STAYS = Entry("row-takes-what-stays", "{row} would leave broker {broker}, where it has to stay.", REPORT)
ROW_KEEPS_WHAT_LEAVES = Entry("row-keeps-what-leaves", "{row} would stay on broker {broker}, which it leaves.", REPORT)
ROW_WITH_WRONG_FACTOR = Entry("row-with-wrong-factor", "{row} would not have {factor} replicas.", REPORT)
ROW_UNEVEN_IN_RACK = Entry("row-uneven-in-rack", "{row} would have {held} in rack {rack} instead of {wanted}.", REPORT)
BROKER_OUT_OF_BOUNDS = Entry(
    "broker-out-of-bounds", "Broker {broker} would hold {replicas}; even would be {low:,} to {high:,}.", REPORT
)
NO_PLAN_MEETS_IT = Entry("no-plan-meets-it", "No plan can meet the request for {partitions}.", REPORT)
BOUND_DIFFERS = Entry("bound-differs", "The certificate proves a bound of {proven}, the report says {report}.", REPORT)
BROKER_NOT_WITHIN_EPS = Entry(
    "broker-not-within-eps",
    "Broker {broker} would hold {held}, which is not within {eps:g} % of {mean}, the mean of its rack.",
    REPORT,
)
MOVED_DIFFERS = Entry("moved-differs", "The rows move {rows}, the proof says {report}.", REPORT)
BROKER_OVER_LIMIT = Entry(
    "broker-over-limit",
    "Broker {broker} would hold {peak} of {total} at its peak; the limit is {limit:.0f} %.",
    REPORT,
)
NO_DIRECTORY_HOLDS_IT = Entry(
    "no-directory-holds-it", "No directory of broker {broker} has room for a replica of {size}.", REPORT
)
TOTAL_COPIED_DIFFERS = Entry("total-copied-differs", "The rows copy {rows}; the report says {report}.", REPORT)
TOTAL_ROWS_DIFFERS = Entry("total-rows-differs", "There are {rows:,} rows; the report says {report:,}.", REPORT)
TOTAL_OF_BROKER_DIFFERS = Entry(
    "total-of-broker-differs", "Broker {broker} gets {rows:,} B; the report says {report:,} B.", REPORT
)
MORE_FAULTS = Entry("more-faults", "And {more:,} more.", REPORT)

BROKERS_WITHOUT_RACK = Entry(
    "brokers-without-rack",
    "Brokers without a rack: {brokers}.",
    "Set broker.rack there, or look at the spread yourself.",
)
