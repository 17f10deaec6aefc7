"""Texts of the codes of this app: errors, problems and notices of plans and files, and findings of the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkadash.changes.plan import PlanErrorCode, UnfitReason
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.messages import MessageTemplate, Writer, choose_plural
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle, FileErrorCode, FilePart, JsonFault, RuleCode

REPORT = "Nothing of it was stored; report it with what was asked for."
_OWN_CHANGE = "Plan a change of its own for what should lie elsewhere."
_LOOK = "Look at it again."
_GOES_ON = "What Kafka has in flight goes on by itself; nothing new is submitted."

REASSIGNMENT_MESSAGES: Mapping[ReassignmentErrorCode, MessageTemplate] = {
    # The form of a reassignment
    ReassignmentErrorCode.PAGE_INCOMPLETE: MessageTemplate("This page was not complete.", "Load it again."),
    ReassignmentErrorCode.CLUSTER_NOT_ALLOWED: MessageTemplate(
        "", "Choose one of the clusters that you may propose on."
    ),
    ReassignmentErrorCode.CLUSTER_MISSING: MessageTemplate("", "Choose the cluster that this is about."),
    ReassignmentErrorCode.CLUSTER_READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash: nothing is proposed on it.",
        "Choose another one; an administrator can allow changes under Settings.",
    ),
    ReassignmentErrorCode.MODE_UNKNOWN: MessageTemplate("", "Choose one of the changes that are listed here."),
    ReassignmentErrorCode.MODE_MISSING: MessageTemplate(
        "", "Choose what to do: one of the changes that are listed here."
    ),
    ReassignmentErrorCode.NO_BROKER_ID: MessageTemplate(
        "", "“{typed}” is no broker id: ids are whole numbers from 0 on."
    ),
    ReassignmentErrorCode.NO_BROKER_CHOSEN: MessageTemplate("", "Choose at least one broker to drain."),
    ReassignmentErrorCode.BROKER_NOT_THERE: MessageTemplate(
        "{cluster} has no {brokers:broker|brokers} {brokers:few}. Its brokers: {known:few}.", "Choose among those."
    ),
    ReassignmentErrorCode.NO_BROKER_LEFT: MessageTemplate(
        "That leaves no broker of {cluster} that is up to take the replicas.", "Leave at least one."
    ),
    ReassignmentErrorCode.RACK_MISSING: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:names|name} no rack and the others do, so nobody can tell "
        "whether replicas are spread.",
        "Set broker.rack there, or plan without regard to racks.",
    ),
    ReassignmentErrorCode.RACKS_NOT_KNOWN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:names|name} no rack and the others do, so nobody can tell "
        "which partitions are spread wrongly.",
        "Set broker.rack there first.",
    ),
    ReassignmentErrorCode.PATTERN_TOO_LONG: MessageTemplate(
        "The regular expression has {length:,} characters; {most:,} fit.", "Shorten it, or name topics."
    ),
    ReassignmentErrorCode.PATTERN_TOO_SLOW: MessageTemplate(
        "To match all names with this regular expression takes more than {seconds:g} s.",
        "Use a simpler one: what repeats something that repeats is slow.",
    ),
    ReassignmentErrorCode.PATTERNS_BUSY: MessageTemplate(
        "Other regular expressions are being tried at this moment.",
        "Wait a few seconds, then change it or send it again.",
    ),
    ReassignmentErrorCode.TARGET_NOT_THERE: MessageTemplate(
        "A broker that was chosen is not in this cluster any more.", "Look at those listed, and choose."
    ),
    ReassignmentErrorCode.EVENNESS_UNREADABLE: MessageTemplate(
        "", "Give percent of the mean of the rack, from 1 to 100, for example 5."
    ),
    ReassignmentErrorCode.FILE_AND_TEXT: MessageTemplate(
        "A file was chosen and a text was pasted.", "Leave one out, so that it is clear which counts."
    ),
    ReassignmentErrorCode.FILE_EMPTY: MessageTemplate("The file is empty.", "Choose the JSON of the assignment."),
    ReassignmentErrorCode.NO_FILE: MessageTemplate("", "Paste the JSON of the assignment, or choose a file."),
    ReassignmentErrorCode.FILE_TOO_LARGE: MessageTemplate(
        "This is {size} MB, and {most} MB are taken at most.",
        "Split the assignment into several changes, or take out the partitions that do not move.",
    ),
    ReassignmentErrorCode.FILE_NOT_SENT: MessageTemplate(
        "This is {size} MB, and {most} MB are taken at most. It was not sent.",
        "Split the assignment into several changes, or take out the partitions that do not move.",
    ),
    ReassignmentErrorCode.TIME_UNREADABLE: MessageTemplate(
        "", "This is no time: give day and time in UTC, like 2026-11-21 22:00."
    ),
    ReassignmentErrorCode.TIME_PASSED: MessageTemplate(
        "This has passed: it is {now} UTC now.", "Give a time that is to come."
    ),
    ReassignmentErrorCode.PERCENT_UNREADABLE: MessageTemplate(
        "", "Give percent of each disk, from 1 to 100, for example 80."
    ),
    ReassignmentErrorCode.PERCENT_OUTSIDE: MessageTemplate(
        "The disk limit is from 1 to 100 percent of each disk.", "Give another one, for example 80."
    ),
    ReassignmentErrorCode.LOWEST_ABOVE_HIGHEST: MessageTemplate(
        "The lowest, {low} MB/s, is above the highest, {high} MB/s.", "Lower the one, or raise the other."
    ),
    ReassignmentErrorCode.STARTS_BELOW: MessageTemplate(
        "It starts below the lowest, {low} MB/s.", "Raise it, or lower that."
    ),
    ReassignmentErrorCode.STARTS_ABOVE: MessageTemplate(
        "It starts above the highest, {high} MB/s.", "Lower it, or raise that."
    ),
    ReassignmentErrorCode.MORE_THAN_THE_CLUSTER: MessageTemplate(
        "More than the {most} of the whole cluster.", "Lower it, or raise that."
    ),
    ReassignmentErrorCode.NO_WHOLE_NUMBER: MessageTemplate("", "Give a whole number from 1 on, for example {example}."),
    ReassignmentErrorCode.TOO_MANY_AT_ONCE: MessageTemplate(
        "{typed:,} at once is more than the {most:,} that are allowed.", "Give fewer."
    ),
    ReassignmentErrorCode.VERY_SLOW: MessageTemplate(
        "{rate} is very slow: a partition of 1 GB takes {hours}.", "Say so again if it is meant."
    ),
    ReassignmentErrorCode.NEVER_FINISHES: MessageTemplate(
        "{rate} is below the {inbound} MB/s that producers write to what moves: at that rate it could never finish.",
        "Say so again if it is meant.",
    ),
    ReassignmentErrorCode.VERIFIES_ALREADY: MessageTemplate(
        "Another file of yours is being verified: {file}.", "Wait until that has ended, or stop it; then send this one."
    ),
    ReassignmentErrorCode.VERIFY_NEEDS_ROLE: MessageTemplate(
        "To verify more than {most} MB on {cluster} you need the role {roles}.",
        "Ask somebody who has it, or send the part of the file that matters.",
    ),
    ReassignmentErrorCode.TITLE_MISSING: MessageTemplate("", "Give it a title: what it does, in a few words."),
    ReassignmentErrorCode.TITLE_DOES_NOT_FIT: MessageTemplate(
        "The title has {length} characters; {most} fit.", "Shorten it."
    ),
    ReassignmentErrorCode.REASON_DOES_NOT_FIT: MessageTemplate(
        "The reason has {length:,} characters; {most:,} fit.", "Shorten it."
    ),
    ReassignmentErrorCode.WHY_NEEDED: MessageTemplate(
        "", "Say why this is needed: the approver decides by it, and the audit keeps it."
    ),
    ReassignmentErrorCode.EDITED_BEFORE_PLANNED: MessageTemplate(
        "This draft was edited meanwhile.", "Look at it again before it is planned."
    ),
    ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED: MessageTemplate(
        "#{number} is no draft any more; only a draft is planned.", "Look at it again."
    ),
    # Plans that cannot be made
    ReassignmentErrorCode.DELETED_BEFORE: MessageTemplate(
        "#{number} was deleted before it was planned.", "Begin it anew if it is still wanted."
    ),
    ReassignmentErrorCode.EDITED_BEFORE: MessageTemplate(
        "#{number} was edited by {who} before it was planned.", "Make the plan again."
    ),
    ReassignmentErrorCode.CLUSTER_NOT_REGISTERED: MessageTemplate(
        "Its cluster is not registered any more.", "Register it again, then make the plan."
    ),
    ReassignmentErrorCode.JSON_NOT_STORED: MessageTemplate(
        "The JSON of this assignment is not stored any more.", "Bring it again under What."
    ),
    ReassignmentErrorCode.BACK_NO_ROWS: MessageTemplate("The run has no rows.", _OWN_CHANGE),
    ReassignmentErrorCode.BACK_NOT_MOVED: MessageTemplate(
        "{row} is left out: it was not moved ({state:row_state}).", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_NOT_MOVED_WHY: MessageTemplate(
        "{row} is left out: it was not moved ({state:row_state}): {why:cause}", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_GONE: MessageTemplate(
        "{row} is left out: it is not in the cluster any more.", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_OTHER_TOPIC: MessageTemplate(
        "{row} is left out: its topic was deleted and created again since.", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_ALREADY: MessageTemplate(
        "{row} is left out: it has its original replicas again already.", "Nothing is to be done for it."
    ),
    ReassignmentErrorCode.BACK_CHANGED: MessageTemplate(
        "{row} is left out: its replicas are {replicas:brokers} by now, and the run left it with {left:brokers}.",
        _OWN_CHANGE,
    ),
    ReassignmentErrorCode.ROW_NOT_AS_APPROVED: MessageTemplate("{row}: {why:cause}", "Make the plan again."),
    ReassignmentErrorCode.NOTHING_TAKEN_BACK: MessageTemplate(
        "Nothing of #{number} can be taken back. {why:cause}", _OWN_CHANGE
    ),
    ReassignmentErrorCode.NO_ACCOUNT: MessageTemplate(
        "Whoever asked for the new plan has no account any more.", "Ask for it again."
    ),
    ReassignmentErrorCode.PLANNER_KILLED: MessageTemplate(
        "The planning process was ended by the system ({signal}), mostly for lack of memory.",
        "Plan fewer brokers or topics at once, or give the worker more memory.",
    ),
    ReassignmentErrorCode.PLANNER_FAILED: MessageTemplate(
        "The planning process ended with a fault of its own (exit code {code}).",
        "The log of the worker has the details; report them.",
    ),
    ReassignmentErrorCode.PLANNER_OUT_OF_TIME: MessageTemplate(
        "Planning this takes longer than {seconds} s, the limit for one plan.",
        "Split it into smaller changes, or raise the limit.",
    ),
    ReassignmentErrorCode.CHECKER_DISAGREES: MessageTemplate(
        "The plan does not keep the rule “{rule}”: {problem:cause}", REPORT
    ),
    # Verifications, plans and reassignments that are not there
    ReassignmentErrorCode.NO_SUCH_VERIFICATION: MessageTemplate(
        "{cluster} has no such verification, or it was so long ago that it is forgotten.", "Bring the file again."
    ),
    ReassignmentErrorCode.NO_PLAN_YET: MessageTemplate(
        "Change #{number} has no plan yet.", "Make the plan; its page then has the file of it."
    ),
    ReassignmentErrorCode.NO_ROWS_OF_TOPIC: MessageTemplate(
        "The plan of change #{number} has no rows of a topic {topic}.", "Choose a topic from the page of the plan."
    ),
    ReassignmentErrorCode.NO_REASSIGNMENT: MessageTemplate(
        "#{number} is no reassignment.", "Open it from the list of changes."
    ),
    ReassignmentErrorCode.FILTER_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; it is left out.", "Ids are whole numbers, for example 3."
    ),
    ReassignmentErrorCode.EXISTENCE_NOT_KNOWN: MessageTemplate(
        "Whether {row} exists is not known: the topics were not read yet.", "Ask again after the next refresh."
    ),
    ReassignmentErrorCode.PARTITION_NOT_THERE: MessageTemplate(
        "Partition {row} does not exist, as of {at}.",
        "Correct its name, or ask again after the next refresh if it is new.",
    ),
    # Starting, steering and ending a run
    ReassignmentErrorCode.GIVE_UP_REASON: MessageTemplate("", "Say why it is given up: it stands in its report."),
    ReassignmentErrorCode.GIVE_UP_ONLY_CANCELLED: MessageTemplate(
        "{name} is {state}: only a run that is being cancelled is given up.",
        "Cancel it first, or look at how it stands on its page.",
    ),
    ReassignmentErrorCode.GIVE_UP_TOO_EARLY: MessageTemplate(
        "{cluster} may still answer, and then the cancel ends by itself.",
        "A run may be given up when its cluster has not answered for {minutes:# minute|# minutes}, and {times:# "
        "time|# times} in a row.",
    ),
    ReassignmentErrorCode.FLIGHT_STAYS: MessageTemplate(
        "{moves:# move|# moves} in flight, with an end that nobody knows: Kafka may go on with {moves:it|them}.",
        "Cancel what still moves with Kafka's own tool, if it is to end.",
    ),
    ReassignmentErrorCode.WAITING_STAYS: MessageTemplate(
        "{moves:# waiting move|# waiting moves}, never to begin.", "A new plan is needed for what should still move."
    ),
    ReassignmentErrorCode.OBLIGATIONS_STAY: MessageTemplate(
        "",
        "{throttles:# throttle|# throttles} as obligations of this run: cleared by kafkadash as soon as the cluster "
        "answers again and "
        "nothing of the run is in flight.",
    ),
    ReassignmentErrorCode.NOTHING_STAYS: MessageTemplate(
        "Nothing that is known of.", "Its report says how each row ended."
    ),
    ReassignmentErrorCode.ORDER_REASON: MessageTemplate(
        "", "Say why: it stands in the audit and in the report of the run."
    ),
    ReassignmentErrorCode.RATE_MISSING: MessageTemplate("", "Give a number of MB/s, for example 60."),
    ReassignmentErrorCode.RATE_NEGATIVE: MessageTemplate(
        "", "A throttle is above 0: give a number of MB/s, for example 60."
    ),
    ReassignmentErrorCode.RATE_NO_NUMBER: MessageTemplate(
        "“{typed}” is not a number.", "Give MB/s with a point for decimals, for example 60 or 2.5."
    ),
    ReassignmentErrorCode.RATE_ZERO: MessageTemplate(
        "With a throttle of 0 nothing would ever arrive.", "Give a number of MB/s above 0, for example 60."
    ),
    ReassignmentErrorCode.RATE_TOO_LARGE: MessageTemplate(
        "That is more than {most:,} MB/s, which no broker reaches.", "Give MB/s, not bytes per second."
    ),
    ReassignmentErrorCode.RATE_NOT_APPROVED: MessageTemplate(
        "{name} may run between {least} and {most} MB/s, as it was approved.",
        "{wanted} needs a new approval: cancel the run and propose what is left with other limits.",
    ),
    ReassignmentErrorCode.RATE_CHANGED: MessageTemplate(
        "The throttle is {now} MB/s now, another one than you saw.", _LOOK
    ),
    ReassignmentErrorCode.RATE_CHANGED_BY: MessageTemplate(
        "{who} set the throttle to {now} MB/s on {at}, while you read.", _LOOK
    ),
    ReassignmentErrorCode.RATE_SLOW: MessageTemplate("{wanted} is less than 1 MB/s.", "Is that what you mean?"),
    ReassignmentErrorCode.RATE_BELOW_INBOUND: MessageTemplate(
        "{wanted} is not above {inbound}. {whence} At that rate the run could never finish.", "Set it all the same?"
    ),
    ReassignmentErrorCode.RATE_INBOUND_UNKNOWN: MessageTemplate(
        "{whence} So nobody can tell whether copies still get on at {wanted}.", "Lower it all the same?"
    ),
    ReassignmentErrorCode.MOVES_NO_NUMBER: MessageTemplate("", "Give a whole number of moves {where}, for example 5."),
    ReassignmentErrorCode.MOVES_TOO_FEW: MessageTemplate(
        "", "At least one move at once {where}. To submit nothing more, pause the run."
    ),
    ReassignmentErrorCode.MOVES_NOT_APPROVED: MessageTemplate(
        "{name} may have up to {most:# move|# moves} at once {where}, as it was approved.",
        "More than that needs a new approval: cancel the run and propose what is left with other limits.",
    ),
    ReassignmentErrorCode.LIMITS_CHANGED: MessageTemplate("{name} changed while you read it.", _LOOK),
    ReassignmentErrorCode.ENDED_MEANWHILE: MessageTemplate(
        "{name} ended while you read it: nothing of it is under way.", _LOOK
    ),
    ReassignmentErrorCode.LIMITS_MATTER_NO_MORE: MessageTemplate(
        "{name} is {state}: its limits matter no more.", "Look at how it ends on its page."
    ),
    ReassignmentErrorCode.NOTHING_UNDER_WAY: MessageTemplate(
        "{name} is {state}: nothing of it is under way.", "Look at how it stands on its page."
    ),
    ReassignmentErrorCode.CANCELLED_AS_A_WHOLE: MessageTemplate(
        "{name} is being cancelled as a whole, and its rows with it.",
        "Wait until it has ended; a row that asks can be given up.",
    ),
    ReassignmentErrorCode.NO_RUN: MessageTemplate(
        "#{number} has no run: it was not started.", "Start it from its page."
    ),
    ReassignmentErrorCode.NO_SUCH_DEED: MessageTemplate(
        "“{order_type}” is nothing that can be done here.", "Look at the page again."
    ),
    ReassignmentErrorCode.NO_SUCH_ROW: MessageTemplate(
        "{row} is not moved by {name}.", "Choose a row from the page of the run."
    ),
    ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN: MessageTemplate(
        "#{number} moves no such partition: there is nothing to plan anew.", "Choose a row from the page of the run."
    ),
    ReassignmentErrorCode.NO_SUCH_PARTITION: MessageTemplate(
        "Change #{number} does not move such a partition.", "Choose a row from the page of its run."
    ),
    ReassignmentErrorCode.ROW_HAS_ENDED: MessageTemplate(
        "{row} has ended: {state}. There is nothing to cancel.", "A rollback takes back what is done."
    ),
    ReassignmentErrorCode.ROW_BEING_CANCELLED: MessageTemplate(
        "{row} is being cancelled already.", "Wait until the run shows it as cancelled."
    ),
    ReassignmentErrorCode.ROW_DOES_NOT_ASK: MessageTemplate(
        "{row} does not ask for anything now: it is {state}.", _LOOK
    ),
    ReassignmentErrorCode.NOTHING_IS_SUBMITTED: MessageTemplate(
        "{name} is {state}: nothing is submitted.", "Resume it first."
    ),
    ReassignmentErrorCode.NO_FOREIGN_THROTTLE: MessageTemplate(
        "There is no throttle of others on {entity} now that differs from ours.", _LOOK
    ),
    ReassignmentErrorCode.RUN_NOT_ENDED: MessageTemplate(
        "#{number} is {state}: there is nothing to take back before its run has ended.",
        "Wait until it has ended, or cancel it.",
    ),
    ReassignmentErrorCode.MOVED_NOTHING: MessageTemplate(
        "#{number} moved nothing, or its rows are not kept any more: there is nothing to take back.",
        "Plan a change of its own for what should lie elsewhere.",
    ),
    ReassignmentErrorCode.NOT_READ_SINCE: MessageTemplate(
        "{cluster} was not read again since that run ended.", "Wait for the next refresh."
    ),
    ReassignmentErrorCode.NO_REPORT: MessageTemplate(
        "Change #{number} has no report: its run has not ended.",
        "Follow the run on its page; the report is there when it has ended.",
    ),
    ReassignmentErrorCode.NOTHING_TO_REPLAN: MessageTemplate(
        "{row} is {state}: there is nothing to plan anew.", "Look at the row again."
    ),
    ReassignmentErrorCode.NO_OTHER_BROKER: MessageTemplate(
        "There is no other broker that takes replicas to put in the place of {lost}.",
        "Bring a broker back or add one, then plan it anew.",
    ),
    # Notices on the page of a run
    ReassignmentErrorCode.CLUSTER_UNREAD: MessageTemplate(
        "The cluster could not be read{again}: {error}", "Nothing is submitted until it answers."
    ),
    ReassignmentErrorCode.NOT_READ_YET: MessageTemplate(
        "It was not read for this run yet.", "Nothing is submitted until it answers."
    ),
    ReassignmentErrorCode.NEVER_LOOKED: MessageTemplate(
        "The cluster was not read for this run yet.", "Is a worker for runs at work?"
    ),
    ReassignmentErrorCode.SHOWN_IS_OLD: MessageTemplate("What is shown is {age} old.", _GOES_ON),
    ReassignmentErrorCode.NOBODY_READS: MessageTemplate(
        "It should be read every {interval:g} s, and nobody does.", "See whether a worker for runs is at work."
    ),
    ReassignmentErrorCode.CANCEL_CANNOT_END: MessageTemplate(
        "The cancel cannot end, and until it does no other run begins here.", "An administrator may give it up."
    ),
    ReassignmentErrorCode.BROKERS_DOWN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {down} ({since}).",
        "{moves:# move|# moves} that did not end yet {moves:has|have} a replica there. A copy to a broker that is "
        "down goes on when it is back.",
    ),
    ReassignmentErrorCode.READ_ONLY_NOW: MessageTemplate(
        "{cluster} is read-only now: nothing more is submitted.",
        "What is in flight {going}. The throttles that this run set there are still taken away.",
    ),
    ReassignmentErrorCode.PAUSED_AT_ITS_END: MessageTemplate(
        "It is paused, and every move has ended.", "Resume it: it is verified and ends."
    ),
    ReassignmentErrorCode.WINDOW_RAN_OUT: MessageTemplate(
        "Its window is over, and {moves:# move|# moves} did not begin.",
        "They never will. Cancel the run to end it; what is done stays done.",
    ),
    ReassignmentErrorCode.ROWS_ASK: MessageTemplate(
        "{moves:# move asks|# moves ask} for an answer.",
        "What was sent left no trace in the cluster: submit again, or give up.",
    ),
    ReassignmentErrorCode.BLOCKED: MessageTemplate(
        "Blocked{since}: {why}",
        "It stays queued and approved, and is tried again by itself{until}. Changes of other partitions do not wait "
        "for it. Nothing was sent to Kafka.",
    ),
    ReassignmentErrorCode.NOT_OURS_TO_CANCEL: MessageTemplate(
        "Somebody else gave it the target {target}.",
        "That is not ours to cancel: the row ends as superseded and is left as it is.",
    ),
    ReassignmentErrorCode.CANCEL_LEAVES_OTHERS: MessageTemplate(
        "A cancel leaves {there}, another set than the original {original}: somebody changed it while it moved.",
        "{original} is restored by a second request, and then verified.",
    ),
    ReassignmentErrorCode.OUTCOME_NOT_TOLD: MessageTemplate(
        "Kafka's answer does not tell what became of it.", "It is read again, and settled then."
    ),
    ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY: MessageTemplate(
        "Broker {broker} is away.", "Its throttles are read again when it is back."
    ),
    ReassignmentErrorCode.RUN_STILL_HERE: MessageTemplate(
        "#{number} is under way here.",
        "Cancel it first, so that it takes its throttles away: a cluster that is removed is never asked again.",
    ),
    ReassignmentErrorCode.RUN_CANNOT_BE_STOPPED: MessageTemplate(
        "#{number} is under way, and nobody can stop it: what moves goes on in Kafka.",
        "Cancel what still moves with Kafka's own tool.",
    ),
    ReassignmentErrorCode.THROTTLES_STAY: MessageTemplate(
        "", "{throttles:# throttle|# throttles} of #{number}: whoever needs it gone has to remove it by hand."
    ),
    ReassignmentErrorCode.NOT_ALL_AS_PLANNED: MessageTemplate(
        "Some rows did not end as planned.", "The report names each with its reason."
    ),
    ReassignmentErrorCode.THROTTLES_OWED: MessageTemplate(
        "Every row is as planned. Something of our throttles could not be taken away yet.", "That is tried again."
    ),
    ReassignmentErrorCode.RUN_FAILED: MessageTemplate(
        "What was done by then stays done.", "The report names every row."
    ),
    ReassignmentErrorCode.END_NOT_KNOWN: MessageTemplate(
        "How it ended was not written down.", "The audit has what was done, and the rows how they ended."
    ),
    ReassignmentErrorCode.OURS_REMOVED: MessageTemplate(
        "Our throttles were removed by somebody else: {places}.", "They are set again by the next steps."
    ),
    ReassignmentErrorCode.OTHER_RATE_SET: MessageTemplate(
        "Somebody else set another rate where ours stood: {places}.", "It is not adjusted any more."
    ),
    ReassignmentErrorCode.OTHERS_LEFT: MessageTemplate(
        "What was there at the end was not ours any more, and was left: {places}.",
        "Ask who set it before you remove it.",
    ),
    ReassignmentErrorCode.CALL_CAME_LATE: MessageTemplate(
        "A call that had gone astray reached Kafka late: {places}.",
        "What it set is taken away again when the run does not need it.",
    ),
    ReassignmentErrorCode.CLEARED: MessageTemplate(
        "What the run still owed is cleared.", "Nothing of it is left to do."
    ),
    ReassignmentErrorCode.CLEARED_READ_ONLY: MessageTemplate(
        "What the run still owed is cleared.",
        "{cluster} is read-only; what runs set there is taken away too.",
    ),
    ReassignmentErrorCode.OWED: MessageTemplate("", "It cannot be read or cleared now, and will be later: {places}."),
    # Work that a worker does for a page or a command
    ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH: MessageTemplate(
        "To read this file takes more memory or more of a processor than one verification may take.",
        "Split it into smaller files, and verify them one after another.",
    ),
    ReassignmentErrorCode.VERIFIER_FAILED: MessageTemplate(
        "The process that verifies ended with a fault of its own (exit code {code}).",
        "The log of the worker has the details; report them.",
    ),
    # Commands on the server, and the checks of /readyz
    ReassignmentErrorCode.FILE_NOT_READ: MessageTemplate(
        "{file} cannot be read: {fault}.", "Name a file that can be, or - for standard input."
    ),
    ReassignmentErrorCode.FILE_TOO_LONG: MessageTemplate(
        "{file} has more than the {megabytes} MB that are taken.", "Split it, and verify the parts."
    ),
    ReassignmentErrorCode.FILE_NOT_VERIFIED: MessageTemplate(
        "{file} cannot be verified: it has {problems:# problem|# problems}.", "Correct what is printed above."
    ),
    ReassignmentErrorCode.FILE_REFUSED: MessageTemplate("{file}: {fault}", "Nothing was written."),
    ReassignmentErrorCode.FILE_NOT_WRITTEN: MessageTemplate(
        "{file} cannot be written: {fault}.", "Name another place for it."
    ),
    ReassignmentErrorCode.ONE_FILE_FOR_BOTH: MessageTemplate(
        "{file} would hold the plan and the report.", "Name a file for each of them."
    ),
    ReassignmentErrorCode.NO_REPORT_OF_A_PLAN: MessageTemplate(
        "{file} is no report of a plan.", "Give the one that `manage.py plan` wrote beside it."
    ),
    ReassignmentErrorCode.NO_PLAN_GIVEN: MessageTemplate(
        "The mode {mode} needs a plan to start from.", "Give its file, in Kafka’s format, with --plan."
    ),
    ReassignmentErrorCode.OPTION_NO_IDS: MessageTemplate(
        "{option} is “{given}”, which are no ids of brokers.", "Write whole numbers, such as 3,4."
    ),
    ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER: MessageTemplate(
        "{option} is “{given}”, which is no whole number up to 2,147,483,647.", "Write one, such as 3."
    ),
    ReassignmentErrorCode.OPTION_NO_SHARE: MessageTemplate(
        "{option} is “{given}”, which is no number.", "Write a share from 0 to 1, such as 0.8."
    ),
    ReassignmentErrorCode.DISK_USE_RECKONED: MessageTemplate(
        "What is in use on the disk of {brokers:broker|brokers} {brokers:few} is not told, so it is reckoned from the "
        "sizes of the replicas there.",
        "Other files on these disks are not in it.",
    ),
    ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN: MessageTemplate(
        "The report is of another plan, or of another state of the cluster.",
        "Give the one that was written with this plan.",
    ),
    ReassignmentErrorCode.ROWS_AS_NOW: MessageTemplate(
        "{partitions:# partition of the file is|# partitions of the file are} as asked already.",
        "Only the others are judged.",
    ),
    ReassignmentErrorCode.NOT_COLLECTED: MessageTemplate(
        "Nothing was collected of {cluster} yet.",
        "See that it is enabled, and beat and a worker for the queue collect run.",
    ),
}


PLAN_MESSAGES: Mapping[PlanErrorCode, MessageTemplate] = {
    # A request that cannot be planned, or about which something is to be known
    PlanErrorCode.NO_BROKER_NAMED: MessageTemplate("No broker to drain is named.", "Name at least one."),
    PlanErrorCode.BROKERS_UNKNOWN: MessageTemplate(
        "There {brokers:is|are} no {brokers:broker|brokers} {brokers:few} in this cluster. Its brokers: {known:few}.",
        "Name brokers of the cluster only.",
    ),
    PlanErrorCode.TARGETS_UNKNOWN: MessageTemplate(
        "No replicas can go to {brokers:broker|brokers} {brokers:few}: not in this cluster.",
        "Name brokers of the cluster only.",
    ),
    PlanErrorCode.ALL_WOULD_BE_DRAINED: MessageTemplate(
        "All brokers of the cluster would be drained; nobody is left to hold the replicas.", "Leave at least one."
    ),
    PlanErrorCode.NO_TARGET: MessageTemplate(
        "No broker is left that may be given replicas: all others are away, fenced, cordoned or left out.",
        "Bring one of them back, or drain fewer.",
    ),
    PlanErrorCode.NOTHING_TO_DRAIN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:holds|hold} no replicas; there is nothing to move.",
        "Choose another broker.",
    ),
    PlanErrorCode.HOLDS_NOTHING: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:holds|hold} no replicas.", "The others are drained as asked."
    ),
    PlanErrorCode.TOO_FEW_BROKERS: MessageTemplate(
        "{topic} has {replicas:# replica|# replicas}, and only {brokers:# broker|# brokers} would be left for them.",
        "Drain fewer brokers, add some, or lower its replication factor first.",
    ),
    PlanErrorCode.RACKS_MIXED: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:names|name} no rack while others do, so the spread over "
        "racks cannot be kept.",
        "Set broker.rack there, or plan without regard to racks.",
    ),
    PlanErrorCode.LAST_OF_A_RACK: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:is|are} the last in {racks:rack|racks} {racks:names} that "
        "may hold replicas: without {brokers:it|them} {fewer:fewer_racks}.",
        "Accept fewer racks, or add a broker there.",
    ),
    PlanErrorCode.LEADER_MISSING: MessageTemplate(
        "{partitions:names} {partitions:has|have} no leader: nothing can be copied before there is one.",
        "Bring back a broker that is in sync, or the move waits for it.",
    ),
    PlanErrorCode.MOVES_ALREADY: MessageTemplate(
        "{row} is being reassigned already.", "Wait until that is done, or cancel it."
    ),
    PlanErrorCode.DISK_LIMIT: MessageTemplate(
        "Broker {broker} would come to {share:disk_share} of its disk: {used:bytes} in use and {coming:bytes} more, "
        "of {total:bytes}. The limit is {limit:.0f} %, which leaves room for {room:bytes}.",
        "Make room on it, move less at once, or allow more under Limits.",
    ),
    PlanErrorCode.DISK_LIMIT_OF_A_DIRECTORY: MessageTemplate(
        "Broker {broker} would get a replica of {replica:bytes}, and no log directory of it has room for that: "
        "{room:bytes} at most, with a limit of {limit:.0f} %.",
        "Make room in one of them, or allow more under Limits.",
    ),
    PlanErrorCode.DISK_UNJUDGED: MessageTemplate(
        "The disk of {brokers:broker|brokers} {brokers:few} is not known, so the limit was not kept there.",
        "See on the broker's page why it is not read.",
    ),
    PlanErrorCode.SIZE_UNJUDGED: MessageTemplate(
        "The size of {partitions:# partition that moves|# partitions that move} is not known; it is missing in what "
        "was reckoned for disks.",
        "See on the pages of the brokers why their disks are not read.",
    ),
    PlanErrorCode.ALL_AS_ASKED: MessageTemplate(
        "{partitions:The only partition of the file is|All # partitions of the file are} as asked already; nothing "
        "would move.",
        "Nothing is left to do for this file.",
    ),
    PlanErrorCode.SOME_AS_ASKED: MessageTemplate(
        "{partitions:# partition of the file is|# partitions of the file are} as asked already.",
        "Only the others are planned.",
    ),
    PlanErrorCode.PARTITION_UNKNOWN: MessageTemplate(
        "There is no partition {row}: {topic} has {partitions:# partition|# partitions}, numbered from 0.",
        "Correct it in the file, or take it out.",
    ),
    PlanErrorCode.TOPIC_UNKNOWN: MessageTemplate(
        "There is no topic {topic} in this cluster.",
        "Correct it in the file, or take it out.",
        many="There is no topic {topic} in this cluster (the first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.BROKER_UNKNOWN: MessageTemplate(
        "There is no broker {broker} in this cluster.",
        "Name brokers of the cluster only.",
        many="There is no broker {broker} in this cluster (the first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.BROKER_UNFIT: MessageTemplate(
        "Broker {broker} {why:unfit} and can be given no replicas now.",
        "Name another one, or wait until it can.",
        many="Broker {broker} {why:unfit} and can be given no replicas now (the first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.KEPT_ON_ONE_AWAY: MessageTemplate(
        "{partitions:# partition keeps|# partitions keep} a replica on broker {broker}, which is away: what moves "
        "may stay listed as moving until it is back.",
        "Bring it back first, or plan these replicas elsewhere too.",
    ),
    PlanErrorCode.OTHER_FACTOR: MessageTemplate(
        "{row} has {replicas:# replica|# replicas} and would have {target:,}.",
        "If that is meant, allow the replication factor to change.",
    ),
    PlanErrorCode.DIRECTORY_UNKNOWN: MessageTemplate(
        "{row}: broker {broker} has no log directory {path}; it has {paths:names}.", 'Name one that it has, or "any".'
    ),
    PlanErrorCode.DIRECTORIES_ONLY: MessageTemplate(
        "{row} keeps its brokers and only asks for other log directories; only moves between brokers are planned here.",
        "Move it between disks with Kafka's own tool, kafka-reassign-partitions.",
    ),
    PlanErrorCode.DIRECTORY_OF_ONE_THAT_STAYS: MessageTemplate(
        "{row}: broker {broker} keeps its replica, and the file names the directory {path} for it.",
        'Only new replicas are put into a directory here: write "any" for one that stays.',
    ),
    PlanErrorCode.NO_BROKERS_TO_ADD: MessageTemplate(
        "No broker that is to be given replicas is named.", "Name those that were added."
    ),
    PlanErrorCode.NO_BROKERS_TO_REPLACE: MessageTemplate("No broker to replace is named.", "Name at least one."),
    PlanErrorCode.NO_REPLACEMENTS: MessageTemplate(
        "No broker is named that takes over from {brokers:broker|brokers} {brokers:few}.",
        "Name at least one that does.",
    ),
    PlanErrorCode.REPLACED_BY_ITSELF: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} would be replaced and take over at once.", "Name each on one side only."
    ),
    PlanErrorCode.NO_FACTOR: MessageTemplate(
        "No replication factor is given.", "Say how many replicas partitions are to have."
    ),
    PlanErrorCode.FACTOR_TOO_LOW: MessageTemplate(
        "A replication factor of {factor} leaves partitions without replicas.", "Ask for 1 at least."
    ),
    PlanErrorCode.FACTOR_TOO_HIGH: MessageTemplate(
        "A replication factor of {factor} needs as many brokers, and there {brokers:is|are} only {brokers:,} that "
        "can hold replicas.",
        "Ask for {brokers:,} at most, or add brokers.",
    ),
    PlanErrorCode.PATTERN_WRONG: MessageTemplate(
        "“{pattern}” is no regular expression: {fault}.", "Correct it; it has to match whole names."
    ),
    PlanErrorCode.NO_TOPIC_CHOSEN: MessageTemplate(
        "Of {topics:# topic|# topics} not one is chosen: no name matches “{pattern}”.",
        "Choose other topics; a regular expression has to match whole names.",
    ),
    PlanErrorCode.ALL_TOPICS_EXCLUDED: MessageTemplate(
        "Of {topics:# topic|# topics} not one is chosen: “{pattern}” excludes them.",
        "Choose other topics; a regular expression has to match whole names.",
    ),
    PlanErrorCode.TOPICS_UNKNOWN: MessageTemplate(
        "There is no topic {topics:names} in this cluster.", "Name topics of the cluster only."
    ),
    PlanErrorCode.EPS_OUTSIDE: MessageTemplate(
        "Disks within {eps:g} of their mean is no share.", "Give one from 0 to 1; 0.05 are 5 %."
    ),
    PlanErrorCode.DISK_LIMIT_OUTSIDE: MessageTemplate(
        "A disk limit of {limit:g} is no share of a disk.", "Give one from 0 to 1; 0.8 are 80 %."
    ),
    PlanErrorCode.DISK_LIMIT_PASSED: MessageTemplate(
        "Broker {broker} uses {share:disk_share} of its disk today, {used:bytes} of {total:bytes}, and the disk "
        "limit is {limit:g} %.",
        "Allow more, make room there, or let only others be given replicas.",
        many="Broker {broker} uses {share:disk_share} of its disk today, {used:bytes} of {total:bytes} (the fullest of "
        "{over:,}), and the disk limit is {limit:g} %.",
        by="over",
    ),
    PlanErrorCode.MOST_REPLICAS_TOO_LOW: MessageTemplate(
        "At most {most} replicas on a broker would leave none anywhere.", "Allow 1 at least."
    ),
    PlanErrorCode.GONE_LEFT_OUT: MessageTemplate(
        "{partitions:names} {partitions:is|are} not in this cluster any more.",
        "What is left of the earlier plan is planned.",
    ),
    PlanErrorCode.NOTHING_LEFT_TO_FINISH: MessageTemplate(
        "Every partition of the earlier plan moves already, or is not in this cluster any more.",
        "Plan again when those that move are done.",
    ),
    # A placement that cannot be had, or not as it was asked for
    PlanErrorCode.KEEPS_MORE_THAN_ALLOWED: MessageTemplate(
        "Broker {broker} keeps {replicas:# replica|# replicas}, and {most} are allowed on a broker.",
        "Allow more replicas per broker, or let others move too.",
    ),
    PlanErrorCode.NO_ROOM_AT_THE_MAXIMUM: MessageTemplate(
        "With at most {most} replicas on a broker there is room for {room:,}, and there are {total:,}.",
        "Allow more replicas per broker, or add brokers.",
    ),
    PlanErrorCode.MOVING_LEFT_OUT: MessageTemplate(
        "{partitions:names} {partitions:is|are} being reassigned already, and left out of this plan.",
        "Plan again when that is done.",
    ),
    PlanErrorCode.AS_EVEN_AS_POSSIBLE: MessageTemplate(
        "The brokers do not get even shares of the replicas: {brokers:uneven_brokers}.",
        "Let others move too, or add a broker to the rack that has too few.",
    ),
    PlanErrorCode.LEFT_ON_ONE_DOWN: MessageTemplate(
        "{replicas:# replica stays|# replicas stay} on broker {broker}, which {why:unfit}.",
        "Drain it, unless it comes back.",
    ),
    PlanErrorCode.REPLACEMENT_HOLDS_IT: MessageTemplate(
        "{partitions:names} {partitions:is|are} on {brokers:broker|brokers} {brokers:few} already, so one of the "
        "replicas that leave would have no place.",
        "Name further brokers to take their place, or let others move too.",
    ),
    PlanErrorCode.OUTSIDE_FOR_A_LARGE_ONE: MessageTemplate(
        "Broker {broker} would hold {held:bytes}, and {mean:bytes} is the mean of its rack: {partition} alone is "
        "larger than that allows.",
        "Split that topic over more partitions, or accept it.",
    ),
    PlanErrorCode.OUTSIDE_FOR_THE_REST: MessageTemplate(
        "Broker {broker} would hold {held:bytes}, and {mean:bytes} is the mean of its rack: large partitions leave "
        "the others of the rack less.",
        "Accept it, or spread those topics over more partitions.",
    ),
    PlanErrorCode.OUTSIDE_AND_STUCK: MessageTemplate(
        "Broker {broker} would hold {held:bytes}, and {mean:bytes} is the mean of its rack: what may move does not "
        "suffice, or there is no room for it.",
        "Let more topics move, or allow more of the disks.",
    ),
    PlanErrorCode.MORE_OUTSIDE: MessageTemplate(
        "{brokers:# more broker|# more brokers} could not be brought within what was asked for.",
        "The table of brokers has them all.",
    ),
    # The planner, and stored plans
    PlanErrorCode.PLANNER_OUT_OF_MEMORY: MessageTemplate(
        "Planning this needs more than {most:.1f} GB of memory, the limit for one plan.",
        "Split it into smaller changes, or raise the limit.",
    ),
    PlanErrorCode.PLAN_OF_ANOTHER_FORMAT: MessageTemplate(
        "The plan has format {found}; this version reads format {own}.",
        "Make the plan again, or start the version that made it.",
    ),
    PlanErrorCode.PLAN_NOT_READABLE: MessageTemplate(
        "The stored plan cannot be read: {error}.", "Make the plan again."
    ),
}

_UNFIT = {
    UnfitReason.AWAY: "is away",
    UnfitReason.FENCED: "is fenced",
    UnfitReason.SILENT: "does not answer",
    UnfitReason.CORDONED: "is cordoned",
}


def _fewer_racks(parts: Sequence[Sequence[int]]) -> str:
    """``parts``: partitions, racks that they would be in, racks that they are in."""
    words = []
    for number, to, now in parts:
        partitions, racks = choose_plural("# partition|# partitions", number), choose_plural("# rack|# racks", to)
        words.append(f"{partitions} would be in {racks} instead of {now}")
    return listed_shortly(words, 3)


def _uneven_brokers(brokers: Sequence[Sequence[int] | int]) -> str:
    """``brokers``: id, replicas that it has, and those that would be even; the last may be how many more there are."""
    words = []
    for each in brokers:
        if isinstance(each, int):
            words.append(f"and {each:,} more")
        else:
            broker, has, even = each
            than = "more" if has > even else "fewer"
            words.append(f"broker {broker} has {has:,} instead of {even:,} ({than} than even)")
    return "; ".join(words)


PLAN_WRITERS: Mapping[str, Writer] = {
    "unfit": lambda reason: _UNFIT[UnfitReason(reason)],
    "fewer_racks": _fewer_racks,
    "uneven_brokers": _uneven_brokers,
    "disk_share": lambda share: "more than all" if share is None else f"{100 * share:.1f} %",
}


FILE_MESSAGES: Mapping[FileErrorCode, MessageTemplate] = {
    # Kafka's JSON of an assignment
    FileErrorCode.MARK_IGNORED: MessageTemplate("The file begins with a byte order mark.", "It is ignored."),
    FileErrorCode.UTF_16: MessageTemplate("The file is UTF-16; Kafka reads UTF-8.", "Save it as UTF-8."),
    FileErrorCode.NOT_UTF_8: MessageTemplate(
        "The file is not UTF-8: byte 0x{byte:02x} here is part of no character.", "Save it as UTF-8."
    ),
    FileErrorCode.NOTHING_IN_IT: MessageTemplate("The file is empty.", "Bring the JSON of the assignment."),
    FileErrorCode.NOT_JSON: MessageTemplate("This is not JSON: {fault}.", "Mend it there, then bring it again."),
    FileErrorCode.GENERATED: MessageTemplate(
        "This is all that kafka-reassign-partitions --generate printed.", "Leave only the JSON below “{heading}”."
    ),
    FileErrorCode.NO_OBJECT: MessageTemplate(
        'The file holds {found}, not an object with "version" and "partitions".', "Bring Kafka’s JSON of an assignment."
    ),
    FileErrorCode.TOPICS_TO_MOVE: MessageTemplate(
        "This is a list of topics to move, the input of kafka-reassign-partitions --generate.",
        'What is read here is its result, with "partitions".',
    ),
    FileErrorCode.NOTHING_ASKED_FOR: MessageTemplate(
        "{field} is an empty list: nothing is asked for.", "Name the partitions that are to move."
    ),
    FileErrorCode.OTHER_VERSION: MessageTemplate(
        "{field} is {found}; Kafka knows version 1 only.", "Write 1, if the file is of that format."
    ),
    FileErrorCode.VERSION_MISSING: MessageTemplate(
        'There is no "version".', "The file is read as version 1, as Kafka’s tool does."
    ),
    FileErrorCode.FIELD_UNKNOWN: MessageTemplate(
        "{field} is no field of Kafka’s format.",
        "It is ignored, as Kafka’s tool does.",
        many="{field} is no field of Kafka’s format (the first of {times:,} times).",
        by="times",
    ),
    FileErrorCode.FIELD_MISSING: MessageTemplate("{where} has no {field}.", "Add it."),
    FileErrorCode.FIELD_OF_OTHER_SHAPE: MessageTemplate("", "{field} is {found}; it has to be {wanted}."),
    FileErrorCode.FIELD_TWICE: MessageTemplate("The entry has {field} more than once.", "Leave one of them."),
    FileErrorCode.STANDS_TWICE: MessageTemplate(
        "{again} stands here again; it is on line {line:,} already.", "Leave one of them."
    ),
    FileErrorCode.TOO_MANY_PROBLEMS: MessageTemplate(
        "There are {most:,} problems up to line {line:,}; what follows was not read.",
        "Mend these, then bring the file again.",
    ),
    FileErrorCode.NO_NAME_OF_A_TOPIC: MessageTemplate(
        "{field} is {found}, which no topic can be called.", "Give the name of a topic."
    ),
    FileErrorCode.NO_REPLICAS: MessageTemplate(
        "{row} has an empty list of replicas.", "Name the brokers that are to have them."
    ),
    FileErrorCode.NO_ID_OF_A_BROKER: MessageTemplate(
        "{row}: {found} is no broker id.",
        "Ids are whole numbers from 0 on.",
        many="{row}: {wrong:,} of its replicas are no broker ids, the first is {found}.",
        by="wrong",
    ),
    FileErrorCode.REPLICA_TWICE: MessageTemplate(
        "{row} names broker {broker} {times:times} in its replicas.", "Leave it once."
    ),
    FileErrorCode.DIRECTORIES_NO_LIST: MessageTemplate(
        "", '{row}: {field} has to be a list of paths or "any", one for each replica.'
    ),
    FileErrorCode.DIRECTORIES_NOT_AS_MANY: MessageTemplate(
        "",
        "{row} has {replicas:# replica|# replicas} and {directories:# log directory|# log directories}; it needs one "
        "for each replica.",
    ),
    FileErrorCode.DIRECTORY_NOT_ABSOLUTE: MessageTemplate(
        "", '{row}: a log directory has to be an absolute path or "any".'
    ),
    FileErrorCode.DIRECTORY_IMPOSSIBLE: MessageTemplate(
        "{row}: {path} can be no log directory: too long, or not printable.", "Name a directory of the broker."
    ),
    # An exported topology
    FileErrorCode.TOPOLOGY_NOT_UTF_8: MessageTemplate("The topology is not UTF-8.", "Export it again."),
    FileErrorCode.TOPOLOGY_NOT_JSON: MessageTemplate("The topology is not JSON: {error}.", "Export it again."),
    FileErrorCode.TOPOLOGY_TWICE: MessageTemplate("{one} is in the topology twice.", "Leave it once."),
    FileErrorCode.TOPOLOGY_PARTITION_TWICE: MessageTemplate(
        "{where} has partition {partition} twice.", "Leave it once."
    ),
    FileErrorCode.TOPOLOGY_TOO_LARGE: MessageTemplate(
        "All replicas together have {total:bytes}; up to {most:bytes} can be planned.", "Give sizes in bytes."
    ),
    FileErrorCode.TOPOLOGY_SHAPE: MessageTemplate("", "{field} has to be {wanted}."),
}

FILE_PARTS: Mapping[FilePart, MessageTemplate] = {
    FilePart.OBJECT: MessageTemplate("an object"),
    FilePart.LIST: MessageTemplate("a list"),
    FilePart.TEXT: MessageTemplate("a text"),
    FilePart.NULL: MessageTemplate("null"),
    FilePart.NUMBER: MessageTemplate("a number"),
    FilePart.TRUE_OR_FALSE: MessageTemplate("true or false"),
    FilePart.LIST_OF_OBJECTS: MessageTemplate("a list of objects"),
    FilePart.LIST_OF_BROKERS: MessageTemplate("a list of broker ids"),
    FilePart.LIST_OF_REPLICAS: MessageTemplate("a list of at least one broker, and none twice"),
    FilePart.QUOTED_NAME: MessageTemplate("a name in quotes"),
    FilePart.WHOLE_NUMBER: MessageTemplate("a whole number from 0 on"),
    FilePart.AT_MOST: MessageTemplate("{most:,} at most"),
    FilePart.POSITIVE_NUMBER: MessageTemplate("a number from 0 on"),
    FilePart.TEXT_OR_NULL: MessageTemplate("a text or null"),
    FilePart.WHOLE_OBJECT: MessageTemplate("The object"),
    FilePart.ANY_ENTRY: MessageTemplate("The entry"),
    FilePart.ENTRY_OF_PARTITIONS: MessageTemplate('An entry of "partitions"'),
    FilePart.ROW_FIELD: MessageTemplate('{row}: "{field}"'),
    FilePart.TOPOLOGY: MessageTemplate("The topology"),
    FilePart.ENTRY_NUMBER: MessageTemplate("Entry {number} of “{list}”"),
    FilePart.ENTRY_OF_LIST: MessageTemplate("{where}: an entry of “{list}”"),
    FilePart.BROKER: MessageTemplate("Broker {broker}"),
    FilePart.TOPIC: MessageTemplate("Topic {topic}"),
    FilePart.PARTITION: MessageTemplate("{where}, partition {partition}"),
    FilePart.FIELD_OF: MessageTemplate("{where}: “{name}”"),
    FilePart.NAMED_LIST: MessageTemplate("list “{name}”"),
}

JSON_FAULTS: Mapping[JsonFault, MessageTemplate] = {
    JsonFault.COMMA_MISSING: MessageTemplate("a comma or a closing bracket is missing here"),
    JsonFault.COLON_MISSING: MessageTemplate("a colon is missing here"),
    JsonFault.VALUE_MISSING: MessageTemplate("a value is missing here"),
    JsonFault.FIELD_NAME_MISSING: MessageTemplate("a field name in double quotes is missing here"),
    JsonFault.TEXT_NOT_ENDED: MessageTemplate("a text begins here that nothing ends"),
    JsonFault.CONTROL_CHARACTER: MessageTemplate("a text holds a control character here, such as a line break"),
    JsonFault.COMMA_BEFORE_END: MessageTemplate("a comma stands here with nothing after it"),
    JsonFault.SOMETHING_FOLLOWS: MessageTemplate("something follows after the end of the object"),
    JsonFault.TOO_LONG: MessageTemplate("what begins here has more than {most:,} characters"),
    JsonFault.ENDS_IN_THE_MIDDLE: MessageTemplate("it ends in the middle"),
    JsonFault.NESTED_TOO_DEEPLY: MessageTemplate("lists or objects are nested too deeply here"),
    JsonFault.NO_CONSTANT: MessageTemplate("{name} is no number of JSON"),
    JsonFault.TOO_MANY_DIGITS: MessageTemplate("a number here has thousands of digits"),
    JsonFault.OTHER_FAULT: MessageTemplate("{words}"),
}

FILE_WRITERS: Mapping[str, Writer] = {"times": lambda times: "twice" if times == 2 else f"{times} times"}


CHECK_MESSAGES: Mapping[CheckErrorCode, MessageTemplate] = {
    # The checker of plans
    CheckErrorCode.ROW_TWICE: MessageTemplate("{row} is in the plan twice.", REPORT),
    CheckErrorCode.ROW_OF_NOTHING: MessageTemplate("There is no partition {row}.", REPORT),
    CheckErrorCode.ROW_OF_NAMESAKE: MessageTemplate("{row} is of another topic of that name.", REPORT),
    CheckErrorCode.ROW_ELSEWHERE: MessageTemplate(
        "{row} is on {there:brokers}; the plan expects {expected:brokers}.", REPORT
    ),
    CheckErrorCode.ROW_CHANGES_DISK: MessageTemplate(
        "{row} would stay on broker {broker} and move to {path}; disk moves are not run here.", REPORT
    ),
    CheckErrorCode.ROW_CHANGES_NOTHING: MessageTemplate("{row} changes nothing.", REPORT),
    CheckErrorCode.ROW_MOVES_ALREADY: MessageTemplate("{row} is being reassigned already.", REPORT),
    CheckErrorCode.ROW_WITH_OTHER_FACTOR: MessageTemplate(
        "{row} would have {after} replicas instead of {before}.", REPORT
    ),
    CheckErrorCode.ROW_WITHOUT_REPLICAS: MessageTemplate("{row} would have no replicas.", REPORT),
    CheckErrorCode.ROW_TWICE_ON_ONE: MessageTemplate(
        "{row} would have two replicas on one broker: {brokers:brokers}.", REPORT
    ),
    CheckErrorCode.ROW_ON_INELIGIBLE: MessageTemplate(
        "{row} would get a replica on broker {broker}, which cannot be given any.", REPORT
    ),
    CheckErrorCode.ROW_LEAVES_OTHERS: MessageTemplate(
        "{row} would leave {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} not drained.", REPORT
    ),
    CheckErrorCode.ROW_ON_DRAINED: MessageTemplate(
        "{row} would be on {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} drained.", REPORT
    ),
    CheckErrorCode.ROW_ON_LEFT_OUT: MessageTemplate(
        "{row} would go to {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} left out.", REPORT
    ),
    CheckErrorCode.ROW_NOT_ASKED_FOR: MessageTemplate("{row} has no replica on a drained broker.", REPORT),
    CheckErrorCode.ROW_REORDERED: MessageTemplate("{row} would change the order of the replicas that stay.", REPORT),
    CheckErrorCode.ROW_IN_FEWER_RACKS: MessageTemplate(
        "{row} would be in {after:# rack|# racks} instead of {before}.", REPORT
    ),
    CheckErrorCode.ROW_UNEVEN: MessageTemplate(
        "{row} would have {held} replicas in rack {rack} and {fewer} in {other}.", REPORT
    ),
    CheckErrorCode.BROKER_NOT_EMPTY: MessageTemplate(
        "Broker {broker} would keep {replicas:# replica|# replicas}.", REPORT
    ),
    CheckErrorCode.ROW_OUTSIDE: MessageTemplate("{row} is none of the partitions that were to be planned.", REPORT),
    CheckErrorCode.ROW_TAKES_WHAT_STAYS: MessageTemplate(
        "{row} would leave broker {broker}, where it has to stay.", REPORT
    ),
    CheckErrorCode.ROW_KEEPS_WHAT_LEAVES: MessageTemplate(
        "{row} would stay on broker {broker}, which it leaves.", REPORT
    ),
    CheckErrorCode.ROW_WITH_WRONG_FACTOR: MessageTemplate("{row} would not have {factor} replicas.", REPORT),
    CheckErrorCode.ROW_UNEVEN_IN_RACK: MessageTemplate(
        "{row} would have {held:# replica|# replicas} in rack {rack} instead of {wanted:range}.", REPORT
    ),
    CheckErrorCode.BROKER_OUT_OF_BOUNDS: MessageTemplate(
        "Broker {broker} would hold {replicas:# replica|# replicas}; even would be {low:,} to {high:,}.", REPORT
    ),
    CheckErrorCode.NO_PLAN_MEETS_IT: MessageTemplate(
        "No plan can meet the request for {partitions:# partition|# partitions}.", REPORT
    ),
    CheckErrorCode.BOUND_DIFFERS: MessageTemplate(
        "The certificate proves a bound of {proven:exact_bytes}, the report says {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.BROKER_NOT_WITHIN_EPS: MessageTemplate(
        "Broker {broker} would hold {held:bytes}, which is not within {eps:g} % of {mean:bytes}, the mean of its rack.",
        REPORT,
    ),
    CheckErrorCode.MOVED_DIFFERS: MessageTemplate(
        "The rows move {rows:exact_bytes}, the proof says {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.BROKER_OVER_LIMIT: MessageTemplate(
        "Broker {broker} would hold {peak:bytes} of {total:bytes} at its peak; the limit is {limit:.0f} %.", REPORT
    ),
    CheckErrorCode.NO_DIRECTORY_HOLDS_IT: MessageTemplate(
        "No directory of broker {broker} has room for a replica of {size:bytes}.", REPORT
    ),
    CheckErrorCode.TOTAL_COPIED_DIFFERS: MessageTemplate(
        "The rows copy {rows:exact_bytes}; the report says {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.TOTAL_ROWS_DIFFERS: MessageTemplate("There are {rows:,} rows; the report says {report:,}.", REPORT),
    CheckErrorCode.TOTAL_OF_BROKER_DIFFERS: MessageTemplate(
        "Broker {broker} gets {rows:exact_bytes}; the report says {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.MORE_FAULTS: MessageTemplate("And {more:,} more.", REPORT),
    CheckErrorCode.BROKERS_WITHOUT_RACK: MessageTemplate(
        "Brokers without a rack: {brokers:brokers}.", "Set broker.rack there, or look at the spread yourself."
    ),
    # The checks of a reassignment before it runs
    CheckErrorCode.GONE: MessageTemplate("{name} does not exist any more.", "Make the plan again."),
    CheckErrorCode.TOPIC_REPLACED: MessageTemplate(
        "{topic} was deleted and created again since the plan.", "Make the plan again."
    ),
    CheckErrorCode.AS_PLANNED_ALREADY: MessageTemplate(
        "{row}: replicas are {replicas:brokers} already, as the plan asks; it expects {expected:brokers} before.",
        "Make the plan again.",
    ),
    CheckErrorCode.OTHER_THAN_PLANNED: MessageTemplate(
        "{row}: replicas are {replicas:brokers}; the plan expects {expected:brokers}.", "Make the plan again."
    ),
    CheckErrorCode.MOVING_BY_OTHERS: MessageTemplate(
        "{row} is being reassigned by somebody else (adding {adding:few}, removing {removing:few}).",
        "Wait until that is done or cancel it, then make the plan again.",
    ),
    CheckErrorCode.FACTOR_CHANGES: MessageTemplate(
        "{row} has {replicas:# replica|# replicas} and would have {target}.",
        "Make the plan again, and allow another number of replicas under Limits if that is meant.",
    ),
    CheckErrorCode.TARGET_NOT_REGISTERED: MessageTemplate(
        "Broker {broker} is not registered; a move to it would never end.", "Start it, or plan without it."
    ),
    CheckErrorCode.TARGET_FENCED: MessageTemplate(
        "Broker {broker} is fenced; a move to it would never end.",
        "See why the controller fences it, or plan without it.",
    ),
    CheckErrorCode.TARGET_SILENT: MessageTemplate(
        "Broker {broker} does not answer; a move to it may never end.",
        "See why it does not answer on its page, or plan without it.",
    ),
    CheckErrorCode.TARGET_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or plan without it."
    ),
    CheckErrorCode.DIRECTORIES_UNREAD: MessageTemplate(
        "The log directories of {brokers:broker|brokers} {brokers:few} were not read.",
        "See on the broker's page why they are not read.",
    ),
    CheckErrorCode.QUORUM_LOST: MessageTemplate(
        "The quorum is lost: nothing can be changed before a majority of the controllers is back.",
        "See the controllers on the page of the quorum.",
    ),
    CheckErrorCode.DISK_TOO_SMALL: MessageTemplate(
        "Broker {broker} {share:comes_to}: {coming:bytes} arrive, and there is room for {room:bytes}.",
        "Make room on it, or plan again with other limits.",
    ),
    CheckErrorCode.DIRECTORIES_TOO_SMALL: MessageTemplate(
        "No directory of broker {broker} has room for {replica:bytes} of one partition: the emptiest has room for "
        "{room:bytes}.",
        "Make room on it, or plan again with other limits.",
    ),
    CheckErrorCode.DISK_NOT_KNOWN: MessageTemplate(
        "The disk of {brokers:broker|brokers} {brokers:few} is not known.",
        "See on the broker's page why it is not read.",
    ),
    CheckErrorCode.SIZE_NOT_KNOWN: MessageTemplate(
        "The size of {partitions:# partition|# partitions} is not known.",
        "See on the pages of the brokers why their disks are not read.",
    ),
    CheckErrorCode.RACKS_NOT_NAMED: MessageTemplate(
        "Some brokers name no rack, so the spread cannot be judged.",
        "Set broker.rack there, or look at the spread yourself.",
    ),
    CheckErrorCode.SPREAD_WORSE: MessageTemplate(
        "{row} would lie in fewer racks, or less evenly: {replicas:brokers}.",
        "Plan it elsewhere, or accept fewer racks where it is said what moves.",
    ),
    CheckErrorCode.LEADERLESS: MessageTemplate(
        "{row} has no leader; nothing can be copied.", "Bring back a broker that has it in sync."
    ),
    CheckErrorCode.LAGGING: MessageTemplate(
        "{row} is under min-ISR ({in_sync} of {needed} needed replicas in sync); let {brokers:broker|brokers} "
        "{brokers:few} catch up first.",
        "It passes by itself then; see why that broker lags.",
    ),
    CheckErrorCode.MIN_ISR_UNREAD: MessageTemplate(
        "{setting} of {topics:# topic|# topics} was not read.",
        "See on the overview of the cluster why they are not read.",
    ),
    CheckErrorCode.THROTTLE_TOO_LOW: MessageTemplate(
        "The partitions that move to broker {broker} receive {inbound:,.1f} MB/s together; copies at {throttle:,.1f} "
        "MB/s would never catch up.",
        "Raise the throttle while it runs, or plan again with a higher one.",
    ),
    CheckErrorCode.INBOUND_UNKNOWN: MessageTemplate(
        "What {partitions:# partition receives|# partitions receive} is not known.",
        "Give a throttle well above what producers write; it can be changed while it runs.",
    ),
    CheckErrorCode.WINDOW_HAS_ENDED: MessageTemplate(
        "The window ended at {closed:moment}.", "Plan again with a window that is to come."
    ),
    CheckErrorCode.WINDOW_TOO_SHORT: MessageTemplate(
        "It needs {needs:duration} at least, and the window is open for {length:duration}.",
        "What is left when it closes does not begin: plan less, a longer window or a higher throttle.",
    ),
    CheckErrorCode.LENGTH_NOT_KNOWN: MessageTemplate(
        "How long it takes is not known: sizes are missing.",
        "See on the pages of the brokers why their disks are not read.",
    ),
    CheckErrorCode.FACTS_NEVER_READ: MessageTemplate(
        "The {facts:fact_kind} of the cluster were never read.",
        "See on the overview of the cluster why they are not read.",
    ),
    CheckErrorCode.QUORUM_NEVER_READ: MessageTemplate(
        "The quorum was never read.", "See on the page of the quorum why it is not read."
    ),
    CheckErrorCode.QUORUM_READ_LONG_AGO: MessageTemplate(
        "The quorum was read {ago:duration} ago, which is too old to be relied on.",
        "See on the page of the quorum why it is not read.",
    ),
    CheckErrorCode.FACTS_READ_LONG_AGO: MessageTemplate(
        "The {facts:fact_kind} were read {ago:duration} ago, which is too old to be relied on.",
        "See on the overview of the cluster why they are not read.",
    ),
}

CHECK_TITLES: Mapping[CheckTitle, MessageTemplate] = {
    CheckTitle.AS_PLANNED: MessageTemplate("Every partition is as it was planned"),
    CheckTitle.NOT_MOVING: MessageTemplate("No reassignment in flight on them"),
    CheckTitle.FACTOR_KEPT: MessageTemplate("Replication factor unchanged"),
    CheckTitle.FACTOR_AS_ASKED: MessageTemplate("Replication factor changes as asked"),
    CheckTitle.TARGETS_ALIVE: MessageTemplate("All target brokers alive, none fenced"),
    CheckTitle.NOT_CORDONED: MessageTemplate("No target broker is cordoned"),
    CheckTitle.CONTROLLER_ANSWERS: MessageTemplate("The controller answers"),
    CheckTitle.QUORUM_ANSWERS: MessageTemplate("The controller quorum answers"),
    CheckTitle.DISK_BELOW_LIMIT: MessageTemplate("Disk below {limit:.0f} % during the move"),
    CheckTitle.SPREAD_KEPT: MessageTemplate("Rack spread does not get worse"),
    CheckTitle.SPREAD_AS_BEFORE: MessageTemplate("Rack spread becomes as it was before #{number}"),
    CheckTitle.SPREAD_AS_ACCEPTED: MessageTemplate("Rack spread gets worse only as accepted"),
    CheckTitle.IN_SYNC: MessageTemplate("No partition under min-ISR that a move could worsen"),
    CheckTitle.THROTTLE_SUFFICES: MessageTemplate("Throttle above what the partitions receive"),
    CheckTitle.FITS_WINDOW: MessageTemplate("Run fits the window"),
}

RULE_NAMES: Mapping[RuleCode, MessageTemplate] = {
    RuleCode.CURRENT_ASSIGNMENT: MessageTemplate("current assignment"),
    RuleCode.REPLICATION_FACTOR: MessageTemplate("replication factor"),
    RuleCode.DISTINCT_BROKERS: MessageTemplate("distinct brokers"),
    RuleCode.ELIGIBLE_BROKERS: MessageTemplate("eligible brokers"),
    RuleCode.ONLY_AS_ASKED: MessageTemplate("only what was asked"),
    RuleCode.SPREAD_OVER_RACKS: MessageTemplate("spread over racks"),
    RuleCode.COUNTS: MessageTemplate("counts"),
    RuleCode.DISK: MessageTemplate("disk"),
    RuleCode.TOTALS: MessageTemplate("totals"),
    RuleCode.LEAST_MOVEMENT: MessageTemplate("least movement"),
    RuleCode.DISKS_WITHIN_EPS: MessageTemplate("disks within eps"),
    RuleCode.PLAN_OF_REPORT: MessageTemplate("plan of the report"),
}


def _range(bounds: Sequence[int]) -> str:
    low, high = bounds
    return f"{low}" if low == high else f"{low} to {high}"


CHECK_WRITERS: Mapping[str, Writer] = {
    "comes_to": lambda share: (
        "has too little disk" if share is None else f"would come to {100 * share:.1f} % of its disk"
    ),
    "exact_bytes": lambda number: "an unknown amount" if number is None else f"{number:,} B",
    "fact_kind": lambda kind: str(kind).replace("-", " "),
    "range": _range,
}
