"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.reassign.errors import ReassignmentErrorCode as Code

REPORT = "Nothing of it was stored; report it with what was asked for."
_LOOK = "Look at it again."
_GOES_ON = "What Kafka has in flight goes on by itself; nothing new is submitted."

REASSIGNMENT_MESSAGES: Mapping[Code, MessageTemplate] = {
    # The form of a reassignment
    Code.PAGE_INCOMPLETE: MessageTemplate("This page was not complete.", "Load it again."),
    Code.CLUSTER_NOT_ALLOWED: MessageTemplate("", "Choose one of the clusters that you may propose on."),
    Code.CLUSTER_MISSING: MessageTemplate("", "Choose the cluster that this is about."),
    Code.CLUSTER_READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash: nothing is proposed on it.",
        "Choose another one; an administrator can allow changes under Settings.",
    ),
    Code.MODE_UNKNOWN: MessageTemplate("", "Choose one of the changes that are listed here."),
    Code.MODE_MISSING: MessageTemplate("", "Choose what to do: one of the changes that are listed here."),
    Code.NO_BROKER_ID: MessageTemplate("", "“{typed}” is no broker id: ids are whole numbers from 0 on."),
    Code.NO_BROKER_CHOSEN: MessageTemplate("", "Choose at least one broker to drain."),
    Code.BROKER_NOT_THERE: MessageTemplate("{cluster} has no {brokers}. {has}", "Choose among those."),
    Code.NO_BROKER_LEFT: MessageTemplate(
        "That leaves no broker of {cluster} that is up to take the replicas.", "Leave at least one."
    ),
    Code.RACK_MISSING: MessageTemplate(
        "{brokers} no rack and the others do, so nobody can tell whether replicas are spread.",
        "Set broker.rack there, or plan without regard to racks.",
    ),
    Code.RACKS_NOT_KNOWN: MessageTemplate(
        "{brokers} no rack and the others do, so nobody can tell which partitions are spread wrongly.",
        "Set broker.rack there first.",
    ),
    Code.PATTERN_TOO_LONG: MessageTemplate(
        "The regular expression has {length:,} characters; {most:,} fit.", "Shorten it, or name topics."
    ),
    Code.PATTERN_TOO_SLOW: MessageTemplate(
        "To match all names with this regular expression takes more than {seconds:g} s.",
        "Use a simpler one: what repeats something that repeats is slow.",
    ),
    Code.PATTERNS_BUSY: MessageTemplate(
        "Other regular expressions are being tried at this moment.",
        "Wait a few seconds, then change it or send it again.",
    ),
    Code.TARGET_NOT_THERE: MessageTemplate(
        "A broker that was chosen is not in this cluster any more.", "Look at those listed, and choose."
    ),
    Code.EVENNESS_UNREADABLE: MessageTemplate(
        "", "Give percent of the mean of the rack, from 1 to 100, for example 5."
    ),
    Code.FILE_AND_TEXT: MessageTemplate(
        "A file was chosen and a text was pasted.", "Leave one out, so that it is clear which counts."
    ),
    Code.FILE_EMPTY: MessageTemplate("The file is empty.", "Choose the JSON of the assignment."),
    Code.NO_FILE: MessageTemplate("", "Paste the JSON of the assignment, or choose a file."),
    Code.FILE_TOO_LARGE: MessageTemplate(
        "This is {size} MB, and {most} MB are taken at most.",
        "Split the assignment into several changes, or take out the partitions that do not move.",
    ),
    Code.FILE_NOT_SENT: MessageTemplate(
        "This is {size} MB, and {most} MB are taken at most. It was not sent.",
        "Split the assignment into several changes, or take out the partitions that do not move.",
    ),
    Code.TIME_UNREADABLE: MessageTemplate("", "This is no time: give day and time in UTC, like 2026-11-21 22:00."),
    Code.TIME_PASSED: MessageTemplate("This has passed: it is {now} UTC now.", "Give a time that is to come."),
    Code.PERCENT_UNREADABLE: MessageTemplate("", "Give percent of each disk, from 1 to 100, for example 80."),
    Code.PERCENT_OUTSIDE: MessageTemplate(
        "The disk limit is from 1 to 100 percent of each disk.", "Give another one, for example 80."
    ),
    Code.LOWEST_ABOVE_HIGHEST: MessageTemplate(
        "The lowest, {low} MB/s, is above the highest, {high} MB/s.", "Lower the one, or raise the other."
    ),
    Code.STARTS_BELOW: MessageTemplate("It starts below the lowest, {low} MB/s.", "Raise it, or lower that."),
    Code.STARTS_ABOVE: MessageTemplate("It starts above the highest, {high} MB/s.", "Lower it, or raise that."),
    Code.MORE_THAN_THE_CLUSTER: MessageTemplate(
        "More than the {most} of the whole cluster.", "Lower it, or raise that."
    ),
    Code.NO_WHOLE_NUMBER: MessageTemplate("", "Give a whole number from 1 on, for example {example}."),
    Code.TOO_MANY_AT_ONCE: MessageTemplate(
        "{typed:,} at once is more than the {most:,} that are allowed.", "Give fewer."
    ),
    Code.VERY_SLOW: MessageTemplate(
        "{rate} is very slow: a partition of 1 GB takes {hours}.", "Say so again if it is meant."
    ),
    Code.NEVER_FINISHES: MessageTemplate(
        "{rate} is below the {inbound} MB/s that producers write to what moves: at that rate it could never finish.",
        "Say so again if it is meant.",
    ),
    Code.VERIFIES_ALREADY: MessageTemplate(
        "Another file of yours is being verified: {file}.", "Wait until that has ended, or stop it; then send this one."
    ),
    Code.VERIFY_NEEDS_ROLE: MessageTemplate(
        "To verify more than {most} MB on {cluster} you need the role {roles}.",
        "Ask somebody who has it, or send the part of the file that matters.",
    ),
    Code.TITLE_MISSING: MessageTemplate("", "Give it a title: what it does, in a few words."),
    Code.TITLE_DOES_NOT_FIT: MessageTemplate("The title has {length} characters; {most} fit.", "Shorten it."),
    Code.REASON_DOES_NOT_FIT: MessageTemplate("The reason has {length:,} characters; {most:,} fit.", "Shorten it."),
    Code.WHY_NEEDED: MessageTemplate("", "Say why this is needed: the approver decides by it, and the audit keeps it."),
    Code.EDITED_BEFORE_PLANNED: MessageTemplate(
        "This draft was edited meanwhile.", "Look at it again before it is planned."
    ),
    Code.ONLY_A_DRAFT_IS_PLANNED: MessageTemplate(
        "#{number} is no draft any more; only a draft is planned.", "Look at it again."
    ),
    # Why no plan was made
    Code.DELETED_BEFORE: MessageTemplate(
        "#{number} was deleted before it was planned.", "Begin it anew if it is still wanted."
    ),
    Code.EDITED_BEFORE: MessageTemplate("#{number} was edited by {who} before it was planned.", "Make the plan again."),
    Code.CLUSTER_NOT_REGISTERED: MessageTemplate(
        "Its cluster is not registered any more.", "Register it again, then make the plan."
    ),
    Code.JSON_NOT_STORED: MessageTemplate(
        "The JSON of this assignment is not stored any more.", "Bring it again under What."
    ),
    Code.NOTHING_TAKEN_BACK: MessageTemplate(
        "Nothing of #{number} can be taken back.{why}", "Plan a change of its own for what should lie elsewhere."
    ),
    Code.NO_ACCOUNT: MessageTemplate("Whoever asked for the new plan has no account any more.", "Ask for it again."),
    Code.PLANNER_KILLED: MessageTemplate(
        "The planning process was ended by the system ({signal}), mostly for lack of memory.",
        "Plan fewer brokers or topics at once, or give the worker more memory.",
    ),
    Code.PLANNER_FAILED: MessageTemplate(
        "The planning process ended with a fault of its own (exit code {code}).",
        "The log of the worker has the details; report them.",
    ),
    Code.PLANNER_OUT_OF_TIME: MessageTemplate(
        "Planning this takes longer than {seconds} s, the limit for one plan.",
        "Split it into smaller changes, or raise the limit.",
    ),
    Code.CHECKER_DISAGREES: MessageTemplate("The plan does not keep the rule “{rule}”: {problem}", REPORT),
    # What is looked for and is not there: verifications, plans and reassignments
    Code.NO_SUCH_VERIFICATION: MessageTemplate(
        "{cluster} has no such verification, or it was so long ago that it is forgotten.", "Bring the file again."
    ),
    Code.NO_PLAN_YET: MessageTemplate(
        "Change #{number} has no plan yet.", "Make the plan; its page then has the file of it."
    ),
    Code.NO_ROWS_OF_TOPIC: MessageTemplate(
        "The plan of change #{number} has no rows of a topic {topic}.", "Choose a topic from the page of the plan."
    ),
    Code.NO_REASSIGNMENT: MessageTemplate("#{number} is no reassignment.", "Open it from the list of changes."),
    Code.FILTER_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; it is left out.", "Ids are whole numbers, for example 3."
    ),
    Code.EXISTENCE_NOT_KNOWN: MessageTemplate(
        "Whether {row} exists is not known: the topics were not read yet.", "Ask again after the next refresh."
    ),
    Code.PARTITION_NOT_THERE: MessageTemplate(
        "Partition {row} does not exist, as of {at}.",
        "Correct its name, or ask again after the next refresh if it is new.",
    ),
    # Starting, steering and ending a run
    Code.GIVE_UP_REASON: MessageTemplate("", "Say why it is given up: it stands in its report."),
    Code.GIVE_UP_ONLY_CANCELLED: MessageTemplate(
        "{name} is {state}: only a run that is being cancelled is given up.",
        "Cancel it first, or look at how it stands on its page.",
    ),
    Code.GIVE_UP_TOO_EARLY: MessageTemplate(
        "{cluster} may still answer, and then the cancel ends by itself.",
        "A run may be given up when its cluster has not answered for {wait}, and {times} in a row.",
    ),
    Code.FLIGHT_STAYS: MessageTemplate(
        "{moves} in flight, with an end that nobody knows: Kafka may go on with {them}.",
        "Cancel what still moves with Kafka's own tool, if it is to end.",
    ),
    Code.WAITING_STAYS: MessageTemplate("{moves}, never to begin.", "A new plan is needed for what should still move."),
    Code.OBLIGATIONS_STAY: MessageTemplate(
        "",
        "{throttles} as obligations of this run: cleared by kafkadash as soon as the cluster answers again and "
        "nothing of the run is in flight.",
    ),
    Code.NOTHING_STAYS: MessageTemplate("Nothing that is known of.", "Its report says how each row ended."),
    Code.ORDER_REASON: MessageTemplate("", "Say why: it stands in the audit and in the report of the run."),
    Code.RATE_MISSING: MessageTemplate("", "Give a number of MB/s, for example 60."),
    Code.RATE_NEGATIVE: MessageTemplate("", "A throttle is above 0: give a number of MB/s, for example 60."),
    Code.RATE_NO_NUMBER: MessageTemplate(
        "“{typed}” is not a number.", "Give MB/s with a point for decimals, for example 60 or 2.5."
    ),
    Code.RATE_ZERO: MessageTemplate(
        "With a throttle of 0 nothing would ever arrive.", "Give a number of MB/s above 0, for example 60."
    ),
    Code.RATE_TOO_LARGE: MessageTemplate(
        "That is more than {most:,} MB/s, which no broker reaches.", "Give MB/s, not bytes per second."
    ),
    Code.RATE_NOT_APPROVED: MessageTemplate(
        "{name} may run between {least} and {most} MB/s, as it was approved.",
        "{wanted} needs a new approval: cancel the run and propose what is left with other limits.",
    ),
    Code.RATE_CHANGED: MessageTemplate("The throttle is {now} MB/s now, another one than you saw.", _LOOK),
    Code.RATE_CHANGED_BY: MessageTemplate("{who} set the throttle to {now} MB/s on {at}, while you read.", _LOOK),
    Code.RATE_SLOW: MessageTemplate("{wanted} is less than 1 MB/s.", "Is that what you mean?"),
    Code.RATE_BELOW_INBOUND: MessageTemplate(
        "{wanted} is not above {inbound}. {whence} At that rate the run could never finish.", "Set it all the same?"
    ),
    Code.RATE_INBOUND_UNKNOWN: MessageTemplate(
        "{whence} So nobody can tell whether copies still get on at {wanted}.", "Lower it all the same?"
    ),
    Code.MOVES_NO_NUMBER: MessageTemplate("", "Give a whole number of moves {where}, for example 5."),
    Code.MOVES_TOO_FEW: MessageTemplate(
        "", "At least one move at once {where}. To submit nothing more, pause the run."
    ),
    Code.MOVES_NOT_APPROVED: MessageTemplate(
        "{name} may have up to {most} at once {where}, as it was approved.",
        "More than that needs a new approval: cancel the run and propose what is left with other limits.",
    ),
    Code.LIMITS_CHANGED: MessageTemplate("{name} changed while you read it.", _LOOK),
    Code.ENDED_MEANWHILE: MessageTemplate("{name} ended while you read it: nothing of it is under way.", _LOOK),
    Code.LIMITS_MATTER_NO_MORE: MessageTemplate(
        "{name} is {state}: its limits matter no more.", "Look at how it ends on its page."
    ),
    Code.NOTHING_UNDER_WAY: MessageTemplate(
        "{name} is {state}: nothing of it is under way.", "Look at how it stands on its page."
    ),
    Code.CANCELLED_AS_A_WHOLE: MessageTemplate(
        "{name} is being cancelled as a whole, and its rows with it.",
        "Wait until it has ended; a row that asks can be given up.",
    ),
    Code.NO_RUN: MessageTemplate("#{number} has no run: it was not started.", "Start it from its page."),
    Code.NO_SUCH_DEED: MessageTemplate("“{deed}” is nothing that can be done here.", "Look at the page again."),
    Code.NO_SUCH_ROW: MessageTemplate("{row} is not moved by {name}.", "Choose a row from the page of the run."),
    Code.NO_SUCH_ROW_TO_REPLAN: MessageTemplate(
        "#{number} moves no such partition: there is nothing to plan anew.", "Choose a row from the page of the run."
    ),
    Code.NO_SUCH_PARTITION: MessageTemplate(
        "Change #{number} does not move such a partition.", "Choose a row from the page of its run."
    ),
    Code.ROW_HAS_ENDED: MessageTemplate(
        "{row} has ended: {state}. There is nothing to cancel.", "A rollback takes back what is done."
    ),
    Code.ROW_BEING_CANCELLED: MessageTemplate(
        "{row} is being cancelled already.", "Wait until the run shows it as cancelled."
    ),
    Code.ROW_DOES_NOT_ASK: MessageTemplate("{row} does not ask for anything now: it is {state}.", _LOOK),
    Code.NOTHING_IS_SUBMITTED: MessageTemplate("{name} is {state}: nothing is submitted.", "Resume it first."),
    Code.NO_FOREIGN_THROTTLE: MessageTemplate(
        "There is no throttle of others on {entity} now that differs from ours.", _LOOK
    ),
    Code.RUN_NOT_ENDED: MessageTemplate(
        "#{number} is {state}: there is nothing to take back before its run has ended.",
        "Wait until it has ended, or cancel it.",
    ),
    Code.MOVED_NOTHING: MessageTemplate(
        "#{number} moved nothing, or its rows are not kept any more: there is nothing to take back.",
        "Plan a change of its own for what should lie elsewhere.",
    ),
    Code.NOT_READ_SINCE: MessageTemplate(
        "{cluster} was not read again since that run ended.", "Wait for the next refresh."
    ),
    Code.NO_REPORT: MessageTemplate(
        "Change #{number} has no report: its run has not ended.",
        "Follow the run on its page; the report is there when it has ended.",
    ),
    Code.NOTHING_TO_REPLAN: MessageTemplate(
        "{row} is {state}: there is nothing to plan anew.", "Look at the row again."
    ),
    Code.NO_OTHER_BROKER: MessageTemplate(
        "There is no other broker that takes replicas to put in the place of {lost}.",
        "Bring a broker back or add one, then plan it anew.",
    ),
    # What the page of a run says of what fails on its way
    Code.CLUSTER_UNREAD: MessageTemplate(
        "The cluster could not be read{again}: {error}", "Nothing is submitted until it answers."
    ),
    Code.NOT_READ_YET: MessageTemplate("It was not read for this run yet.", "Nothing is submitted until it answers."),
    Code.NEVER_LOOKED: MessageTemplate("The cluster was not read for this run yet.", "Is a worker for runs at work?"),
    Code.SHOWN_IS_OLD: MessageTemplate("What is shown is {age} old.", _GOES_ON),
    Code.NOBODY_READS: MessageTemplate(
        "It should be read every {interval:g} s, and nobody does.", "See whether a worker for runs is at work."
    ),
    Code.CANCEL_CANNOT_END: MessageTemplate(
        "The cancel cannot end, and until it does no other run begins here.", "An administrator may give it up."
    ),
    Code.BROKERS_DOWN: MessageTemplate(
        "{brokers} {down} ({since}).",
        "{moves} that did not end yet {have} a replica there. A copy to a broker that is down goes on when it is back.",
    ),
    Code.READ_ONLY_NOW: MessageTemplate(
        "{cluster} is read-only now: nothing more is submitted.",
        "What is in flight {going}. The throttles that this run set there are still taken away.",
    ),
    Code.PAUSED_AT_ITS_END: MessageTemplate(
        "It is paused, and every move has ended.", "Resume it: it is verified and ends."
    ),
    Code.WINDOW_RAN_OUT: MessageTemplate(
        "Its window is over, and {moves} did not begin.",
        "They never will. Cancel the run to end it; what is done stays done.",
    ),
    Code.ROWS_ASK: MessageTemplate(
        "{moves} {ask} for an answer.", "What was sent left no trace in the cluster: submit again, or give up."
    ),
    Code.BLOCKED: MessageTemplate(
        "Blocked{since}: {why}",
        "It stays queued and approved, and is tried again by itself{until}. Changes of other partitions do not wait "
        "for it. Nothing was sent to Kafka.",
    ),
    Code.NOT_OURS_TO_CANCEL: MessageTemplate(
        "Somebody else gave it the target {target}.",
        "That is not ours to cancel: the row ends as superseded and is left as it is.",
    ),
    Code.CANCEL_LEAVES_OTHERS: MessageTemplate(
        "A cancel leaves {there}, another set than the original {original}: somebody changed it while it moved.",
        "{original} is restored by a second request, and then verified.",
    ),
    Code.OUTCOME_NOT_TOLD: MessageTemplate(
        "Kafka's answer does not tell what became of it.", "It is read again, and settled then."
    ),
    Code.BROKER_OF_THROTTLE_AWAY: MessageTemplate(
        "Broker {broker} is away.", "Its throttles are read again when it is back."
    ),
    Code.CONFIG_UNREAD: MessageTemplate("{resource} could not be read.", "It is tried again in the next step."),
    Code.RUN_STILL_HERE: MessageTemplate(
        "#{number} is under way here.",
        "Cancel it first, so that it takes its throttles away: a cluster that is removed is never asked again.",
    ),
    Code.RUN_CANNOT_BE_STOPPED: MessageTemplate(
        "#{number} is under way, and nobody can stop it: what moves goes on in Kafka.",
        "Cancel what still moves with Kafka's own tool.",
    ),
    Code.THROTTLES_STAY: MessageTemplate(
        "", "{throttles} of #{number}: whoever needs it gone has to remove it by hand."
    ),
    Code.NOT_ALL_AS_PLANNED: MessageTemplate(
        "Some rows did not end as planned.", "The report names each with its reason."
    ),
    Code.THROTTLES_OWED: MessageTemplate(
        "Every row is as planned. Something of our throttles could not be taken away yet.", "That is tried again."
    ),
    Code.RUN_FAILED: MessageTemplate("What was done by then stays done.", "The report names every row."),
    Code.END_NOT_KNOWN: MessageTemplate(
        "How it ended was not written down.", "The audit has what was done, and the rows how they ended."
    ),
    Code.OURS_REMOVED: MessageTemplate(
        "Our throttles were removed by somebody else: {places}.", "They are set again by the next steps."
    ),
    Code.OTHER_RATE_SET: MessageTemplate(
        "Somebody else set another rate where ours stood: {places}.", "It is not adjusted any more."
    ),
    Code.OTHERS_LEFT: MessageTemplate(
        "What was there at the end was not ours any more, and was left: {places}.",
        "Ask who set it before you remove it.",
    ),
    Code.CALL_CAME_LATE: MessageTemplate(
        "A call that had gone astray reached Kafka late: {places}.",
        "What it set is taken away again when the run does not need it.",
    ),
    Code.OWED: MessageTemplate("", "It cannot be read or cleared now, and will be later: {places}."),
    # Work that a worker does for a page or a command
    Code.VERIFIER_TOOK_TOO_MUCH: MessageTemplate(
        "To read this file takes more memory or more of a processor than one verification may take.",
        "Split it into smaller files, and verify them one after another.",
    ),
    Code.VERIFIER_FAILED: MessageTemplate(
        "The process that verifies ended with a fault of its own (exit code {code}).",
        "The log of the worker has the details; report them.",
    ),
    # Commands on the server, and the checks of /readyz
    Code.FILE_NOT_READ: MessageTemplate(
        "{file} cannot be read: {fault}.", "Name a file that can be, or - for standard input."
    ),
    Code.FILE_TOO_LONG: MessageTemplate(
        "{file} has more than the {megabytes} MB that are taken.", "Split it, and verify the parts."
    ),
    Code.FILE_NOT_VERIFIED: MessageTemplate(
        "{file} cannot be verified: it has {problems}.", "Correct what is printed above."
    ),
    Code.FILE_REFUSED: MessageTemplate("{file}: {fault}", "Nothing was written."),
    Code.FILE_NOT_WRITTEN: MessageTemplate("{file} cannot be written: {fault}.", "Name another place for it."),
    Code.ONE_FILE_FOR_BOTH: MessageTemplate(
        "{file} would hold the plan and the report.", "Name a file for each of them."
    ),
    Code.NO_REPORT_OF_A_PLAN: MessageTemplate(
        "{file} is no report of a plan.", "Give the one that `manage.py plan` wrote beside it."
    ),
    Code.NO_PLAN_GIVEN: MessageTemplate(
        "The mode {mode} needs a plan to start from.", "Give its file, in Kafka’s format, with --plan."
    ),
    Code.OPTION_NO_IDS: MessageTemplate(
        "{option} is “{given}”, which are no ids of brokers.", "Write whole numbers, such as 3,4."
    ),
    Code.OPTION_NO_WHOLE_NUMBER: MessageTemplate(
        "{option} is “{given}”, which is no whole number up to 2,147,483,647.", "Write one, such as 3."
    ),
    Code.OPTION_NO_SHARE: MessageTemplate(
        "{option} is “{given}”, which is no number.", "Write a share from 0 to 1, such as 0.8."
    ),
    Code.DISK_USE_RECKONED: MessageTemplate(
        "What is in use on the disk of {brokers} is not told, so it is reckoned from the sizes of the replicas there.",
        "Other files on these disks are not in it.",
    ),
    Code.REPORT_OF_ANOTHER_PLAN: MessageTemplate(
        "The report is of another plan, or of another state of the cluster.",
        "Give the one that was written with this plan.",
    ),
    Code.ROWS_AS_NOW: MessageTemplate(
        "{partitions} of the file {are} as asked already.", "Only the others are judged."
    ),
    Code.NOT_COLLECTED: MessageTemplate(
        "Nothing was collected of {cluster} yet.",
        "See that it is enabled, and beat and a worker for the queue collect run.",
    ),
}
