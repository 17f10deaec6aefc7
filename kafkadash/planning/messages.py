"""Texts of the codes of this app: errors, problems and notices of plans and files, and findings of the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkadash.changes.plan import PlanErrorCode, UnfitReason
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.messages import MessageTemplate, Writer, choose_plural
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle, FileErrorCode, FilePart, JsonFault, RuleCode

REPORT = "No plan was stored. Report this problem with your settings."
_OWN_CHANGE = "Use a separate change to move it."
_CHECK_AGAIN = "Check the page again."
_IN_FLIGHT = "Moves in flight continue in Kafka; no further moves are submitted."
_PLAN_AGAIN = "Plan again."
_CHOOSE_MOVE = "Choose a move on the page of the run."

REASSIGNMENT_MESSAGES: Mapping[ReassignmentErrorCode, MessageTemplate] = {
    # The form of a reassignment
    ReassignmentErrorCode.PAGE_INCOMPLETE: MessageTemplate("The form was incomplete.", "Reload the page."),
    ReassignmentErrorCode.CLUSTER_NOT_ALLOWED: MessageTemplate(
        "", "Choose a cluster on which you may propose changes."
    ),
    ReassignmentErrorCode.CLUSTER_MISSING: MessageTemplate("", "Choose a cluster."),
    ReassignmentErrorCode.CLUSTER_READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash, so changes cannot be proposed.",
        "Choose another cluster, or ask an administrator to allow changes under Settings.",
    ),
    ReassignmentErrorCode.MODE_UNKNOWN: MessageTemplate("", "Choose one of the listed change types."),
    ReassignmentErrorCode.MODE_MISSING: MessageTemplate("", "Choose a change type."),
    ReassignmentErrorCode.NO_BROKER_ID: MessageTemplate(
        "", "“{typed}” is not a broker ID. IDs are whole numbers, 0 or higher."
    ),
    ReassignmentErrorCode.NO_BROKER_CHOSEN: MessageTemplate("", "Select at least one broker to drain."),
    ReassignmentErrorCode.BROKER_NOT_THERE: MessageTemplate(
        "{cluster} has no {brokers:broker|brokers} {brokers:few}. Its brokers: {known:few}.", "Choose from these."
    ),
    ReassignmentErrorCode.NO_BROKER_LEFT: MessageTemplate(
        "No available broker of {cluster} would be left to take the replicas.", "Leave at least one."
    ),
    ReassignmentErrorCode.RACK_MISSING: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:has|have} no rack but others do, so rack spread is unknown.",
        "Set broker.rack there, or plan without rack awareness.",
    ),
    ReassignmentErrorCode.RACKS_NOT_KNOWN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:has|have} no rack but others do, so rack violations are "
        "unknown.",
        "Set broker.rack there first.",
    ),
    ReassignmentErrorCode.NO_TOPICS_CHOSEN: MessageTemplate(
        "No topic is chosen.", "List topics, or type a regular expression."
    ),
    ReassignmentErrorCode.ONLY_INTERNAL_CHOSEN: MessageTemplate(
        "Only internal topics are chosen.", "Choose others: kafkadash does not delete internal topics."
    ),
    ReassignmentErrorCode.PATTERN_TOO_LONG: MessageTemplate(
        "The regular expression has {length:,} characters; the limit is {most:,}.", "Shorten it, or enter topic names."
    ),
    ReassignmentErrorCode.PATTERN_TOO_SLOW: MessageTemplate(
        "Matching all names with this regular expression takes more than {seconds:g} s.",
        "Use a simpler one, without nested repetition.",
    ),
    ReassignmentErrorCode.PATTERNS_BUSY: MessageTemplate(
        "Other regular expressions are being evaluated.", "Wait a few seconds, then try again."
    ),
    ReassignmentErrorCode.TARGET_NOT_THERE: MessageTemplate(
        "A selected broker is no longer in this cluster.", "Select from the listed brokers."
    ),
    ReassignmentErrorCode.EVENNESS_UNREADABLE: MessageTemplate(
        "", "Enter a percentage of the rack mean from 1 to 100, for example 5."
    ),
    ReassignmentErrorCode.FILE_AND_TEXT: MessageTemplate(
        "Both a file and pasted text were given.", "Remove one of them."
    ),
    ReassignmentErrorCode.FILE_EMPTY: MessageTemplate("The file is empty.", "Choose a reassignment JSON file."),
    ReassignmentErrorCode.NO_FILE: MessageTemplate("", "Paste the reassignment JSON, or choose a file."),
    ReassignmentErrorCode.MORE_PROBLEMS: MessageTemplate(
        "And {more:# more problem|# more problems}.", "Fix the JSON, then continue."
    ),
    ReassignmentErrorCode.FILE_TOO_LARGE: MessageTemplate(
        "This is {size} MB; the limit is {most} MB.",
        "Split it into several changes, or remove partitions that do not move.",
    ),
    ReassignmentErrorCode.FILE_NOT_SENT: MessageTemplate(
        "This is {size} MB; the limit is {most} MB. It was not sent.",
        "Split it into several changes, or remove partitions that do not move.",
    ),
    ReassignmentErrorCode.TIME_UNREADABLE: MessageTemplate(
        "", "Enter date and time in UTC, for example 2026-11-21 22:00."
    ),
    ReassignmentErrorCode.TIME_PASSED: MessageTemplate(
        "This time has passed: now is {now} UTC.", "Enter a future time."
    ),
    ReassignmentErrorCode.PERCENT_UNREADABLE: MessageTemplate(
        "", "Enter a percentage of each disk from 1 to 100, for example 80."
    ),
    ReassignmentErrorCode.PERCENT_OUTSIDE: MessageTemplate(
        "The disk limit must be from 1 to 100 percent of each disk.", "Enter another value, for example 80."
    ),
    ReassignmentErrorCode.LOWEST_ABOVE_HIGHEST: MessageTemplate(
        "The minimum, {low} MB/s, is above the maximum, {high} MB/s.", "Lower the minimum, or raise the maximum."
    ),
    ReassignmentErrorCode.STARTS_BELOW: MessageTemplate(
        "The initial throttle is below the minimum, {low} MB/s.", "Raise it, or lower the minimum."
    ),
    ReassignmentErrorCode.STARTS_ABOVE: MessageTemplate(
        "The initial throttle is above the maximum, {high} MB/s.", "Lower it, or raise the maximum."
    ),
    ReassignmentErrorCode.MORE_THAN_THE_CLUSTER: MessageTemplate(
        "This is above the {most} for the whole cluster.", "Lower this number, or raise the other."
    ),
    ReassignmentErrorCode.NO_WHOLE_NUMBER: MessageTemplate(
        "", "Enter a whole number, 1 or higher, for example {example}."
    ),
    ReassignmentErrorCode.TOO_MANY_AT_ONCE: MessageTemplate(
        "{typed:,} is above the limit of {most:,}.", "Enter a lower number."
    ),
    ReassignmentErrorCode.VERY_SLOW: MessageTemplate(
        "{rate} is very slow: a partition of 1 GB takes {hours}.", "Confirm the rate if you intend it."
    ),
    ReassignmentErrorCode.NEVER_FINISHES: MessageTemplate(
        "{rate} is below the {inbound} MB/s that producers write to the moving partitions: the run could never finish.",
        "Confirm the rate if you intend it.",
    ),
    ReassignmentErrorCode.VERIFIES_ALREADY: MessageTemplate(
        "Another file of yours is being verified: {file}.", "Wait until it ends, or stop it. Then upload this file."
    ),
    ReassignmentErrorCode.VERIFY_NEEDS_ROLE: MessageTemplate(
        "Verifying more than {most} MB on {cluster} needs the role {roles}.",
        "Ask a user with this role, or upload only the relevant part.",
    ),
    ReassignmentErrorCode.TITLE_MISSING: MessageTemplate("", "Enter a title: the change in a few words."),
    ReassignmentErrorCode.TITLE_DOES_NOT_FIT: MessageTemplate(
        "The title has {length} characters; the limit is {most}.", "Shorten it."
    ),
    ReassignmentErrorCode.REASON_DOES_NOT_FIT: MessageTemplate(
        "The reason has {length:,} characters; the limit is {most:,}.", "Shorten it."
    ),
    ReassignmentErrorCode.WHY_NEEDED: MessageTemplate(
        "", "Enter a reason: approvers need it, and the audit log keeps it."
    ),
    ReassignmentErrorCode.EDITED_BEFORE_PLANNED: MessageTemplate(
        "This draft changed while you had it open.", "Check it again, then plan."
    ),
    ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED: MessageTemplate(
        "#{number} is no longer a draft; only drafts can be planned.", _CHECK_AGAIN
    ),
    # Plans that cannot be made
    ReassignmentErrorCode.DELETED_BEFORE: MessageTemplate(
        "#{number} was deleted before it was planned.", "Create it again if it is still needed."
    ),
    ReassignmentErrorCode.EDITED_BEFORE: MessageTemplate("{who} edited #{number} before it was planned.", _PLAN_AGAIN),
    ReassignmentErrorCode.CLUSTER_NOT_REGISTERED: MessageTemplate(
        "The cluster of this change is no longer registered.", "Add the cluster again, then plan."
    ),
    ReassignmentErrorCode.JSON_NOT_STORED: MessageTemplate(
        "The reassignment JSON is no longer stored.", "Upload it again under Scope."
    ),
    ReassignmentErrorCode.BACK_NO_ROWS: MessageTemplate(
        "The run has no moves.", "Use a separate change to move replicas."
    ),
    ReassignmentErrorCode.BACK_NOT_MOVED: MessageTemplate(
        "{row} is excluded: it was not moved ({state:row_state}).", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_NOT_MOVED_WHY: MessageTemplate(
        "{row} is excluded: it was not moved ({state:row_state}): {why:cause}", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_GONE: MessageTemplate("{row} is excluded: it is no longer in the cluster.", _OWN_CHANGE),
    ReassignmentErrorCode.BACK_OTHER_TOPIC: MessageTemplate(
        "{row} is excluded: its topic was deleted and created again.", _OWN_CHANGE
    ),
    ReassignmentErrorCode.BACK_ALREADY: MessageTemplate(
        "{row} is excluded: it already has its original replicas.", "No action is needed for it."
    ),
    ReassignmentErrorCode.BACK_CHANGED: MessageTemplate(
        "{row} is excluded: its replicas are now {replicas:brokers}, but the run left {left:brokers}.", _OWN_CHANGE
    ),
    ReassignmentErrorCode.ROW_NOT_AS_APPROVED: MessageTemplate("{row}: {why:cause}", _PLAN_AGAIN),
    ReassignmentErrorCode.NOTHING_TAKEN_BACK: MessageTemplate(
        "Nothing of #{number} can be rolled back. {why:cause}", "Use a separate change to move replicas."
    ),
    ReassignmentErrorCode.NO_ACCOUNT: MessageTemplate(
        "The user who requested the new plan no longer has an account.", "Request it again."
    ),
    ReassignmentErrorCode.PLANNER_KILLED: MessageTemplate(
        "The operating system ended the planning process ({signal}), usually for lack of memory.",
        "Plan fewer brokers or topics at once, or give the worker more memory.",
    ),
    ReassignmentErrorCode.PLANNER_FAILED: MessageTemplate(
        "The planning process failed (exit code {code}).", "Report the details from the log of the worker."
    ),
    ReassignmentErrorCode.PLANNER_OUT_OF_TIME: MessageTemplate(
        "Planning takes longer than {seconds} s, the limit for one plan.",
        "Split the change into smaller ones, or raise the limit.",
    ),
    ReassignmentErrorCode.CHECKER_DISAGREES: MessageTemplate(
        "The plan violates the rule “{rule}”: {problem:cause}", REPORT
    ),
    # Verifications, plans and reassignments that are not there
    ReassignmentErrorCode.NO_SUCH_VERIFICATION: MessageTemplate(
        "{cluster} has no such verification, or it has expired.", "Upload the file again."
    ),
    ReassignmentErrorCode.NO_PLAN_YET: MessageTemplate(
        "Change #{number} has no plan yet.", "Create the plan, then download it from its page."
    ),
    ReassignmentErrorCode.NO_ROWS_OF_TOPIC: MessageTemplate(
        "The plan of change #{number} has no partitions of topic {topic}.", "Choose a topic on the page of the plan."
    ),
    ReassignmentErrorCode.NO_REASSIGNMENT: MessageTemplate(
        "#{number} is not a reassignment.", "Open it from the list of changes."
    ),
    ReassignmentErrorCode.NOTHING_TO_FINISH: MessageTemplate(
        "Nothing is left of this reassignment: {row} has its target, or another reassignment followed.",
        "Check the replicas of the partition.",
    ),
    ReassignmentErrorCode.FILTER_NO_BROKER: MessageTemplate(
        "“{typed}” is not a broker ID and is ignored.", "IDs are whole numbers, for example 3."
    ),
    ReassignmentErrorCode.EXISTENCE_NOT_KNOWN: MessageTemplate(
        "The topics have not been read yet, so the existence of {row} is unknown.", "Try again after the next refresh."
    ),
    ReassignmentErrorCode.PARTITION_NOT_THERE: MessageTemplate(
        "Partition {row} does not exist, as of {at}.",
        "Correct the name. If the partition is new, try again after the next refresh.",
    ),
    # Starting, steering and ending a run
    ReassignmentErrorCode.GIVE_UP_REASON: MessageTemplate("", "Enter a reason to give up; the report shows it."),
    ReassignmentErrorCode.GIVE_UP_ONLY_CANCELLED: MessageTemplate(
        "{name} is {state}: only a run that is being cancelled can be given up.",
        "Cancel the run first, or check its page.",
    ),
    ReassignmentErrorCode.GIVE_UP_TOO_EARLY: MessageTemplate(
        "{cluster} may still answer; the cancellation then ends automatically.",
        "You can give up the run after {minutes:# minute|# minutes} without an answer and {times:# failed read|"
        "# failed reads} in a row.",
    ),
    ReassignmentErrorCode.FLIGHT_STAYS: MessageTemplate(
        "{moves:# move|# moves} in flight with an unknown end: Kafka may continue {moves:it|them}.",
        "To stop {moves:it|them}, use kafka-reassign-partitions --cancel.",
    ),
    ReassignmentErrorCode.WAITING_STAYS: MessageTemplate(
        "{moves:# waiting move|# waiting moves} that will not start.",
        "Create a new plan for partitions that still need to move.",
    ),
    ReassignmentErrorCode.OBLIGATIONS_STAY: MessageTemplate(
        "",
        "{throttles:# throttle|# throttles} of this run: kafkadash removes {throttles:it|them} when the cluster "
        "answers and no move of the run is in flight.",
    ),
    ReassignmentErrorCode.NOTHING_STAYS: MessageTemplate(
        "Nothing known remains.", "The report shows how each move ended."
    ),
    ReassignmentErrorCode.ORDER_REASON: MessageTemplate(
        "", "Enter a reason; the audit log and the report of the run show it."
    ),
    ReassignmentErrorCode.RATE_MISSING: MessageTemplate("", "Enter a rate in MB/s, for example 60."),
    ReassignmentErrorCode.RATE_NEGATIVE: MessageTemplate("", "Enter a rate above 0 MB/s, for example 60."),
    ReassignmentErrorCode.RATE_NO_NUMBER: MessageTemplate(
        "“{typed}” is not a number.", "Enter MB/s with a decimal point, for example 60 or 2.5."
    ),
    ReassignmentErrorCode.RATE_ZERO: MessageTemplate(
        "A throttle of 0 would stop all copies.", "Enter a rate above 0 MB/s, for example 60."
    ),
    ReassignmentErrorCode.RATE_TOO_LARGE: MessageTemplate(
        "This is above {most:,} MB/s, more than any broker reaches.", "Enter MB/s, not bytes per second."
    ),
    ReassignmentErrorCode.RATE_NOT_APPROVED: MessageTemplate(
        "{name} is approved for {least} to {most} MB/s.",
        "{wanted} needs a new approval: cancel the run and propose the rest with other limits.",
    ),
    ReassignmentErrorCode.RATE_CHANGED: MessageTemplate(
        "The throttle changed to {now} MB/s while you had the page open.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.RATE_CHANGED_BY: MessageTemplate(
        "{who} set the throttle to {now} MB/s on {at}, while you had the page open.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.RATE_SLOW: MessageTemplate("{wanted} is less than 1 MB/s.", "Confirm to set it anyway."),
    ReassignmentErrorCode.RATE_BELOW_INBOUND: MessageTemplate(
        "{wanted} is not above {inbound}. {whence} At that rate the run could never finish.",
        "Confirm to set it anyway.",
    ),
    ReassignmentErrorCode.RATE_INBOUND_UNKNOWN: MessageTemplate(
        "{whence} Copies may make no progress at {wanted}.", "Confirm to lower the throttle anyway."
    ),
    ReassignmentErrorCode.MOVES_NO_NUMBER: MessageTemplate("", "Enter a whole number of moves {where}, for example 5."),
    ReassignmentErrorCode.MOVES_TOO_FEW: MessageTemplate(
        "", "Enter at least 1 move {where}. To submit no further moves, pause the run."
    ),
    ReassignmentErrorCode.MOVES_NOT_APPROVED: MessageTemplate(
        "{name} is approved for up to {most:# concurrent move|# concurrent moves} {where}.",
        "More moves need a new approval: cancel the run and propose the rest with other limits.",
    ),
    ReassignmentErrorCode.LIMITS_CHANGED: MessageTemplate("{name} changed while you had the page open.", _CHECK_AGAIN),
    ReassignmentErrorCode.ENDED_MEANWHILE: MessageTemplate("{name} ended while you had the page open.", _CHECK_AGAIN),
    ReassignmentErrorCode.LIMITS_MATTER_NO_MORE: MessageTemplate(
        "{name} is {state}; its limits no longer apply.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.NOTHING_UNDER_WAY: MessageTemplate("{name} is {state} and is not running.", _CHECK_AGAIN),
    ReassignmentErrorCode.CANCELLED_AS_A_WHOLE: MessageTemplate(
        "{name} is already being cancelled with all its moves.",
        "Wait until it has ended. Moves that need a decision can be given up.",
    ),
    ReassignmentErrorCode.NO_RUN: MessageTemplate("#{number} has no run: it was not started.", "Start it on its page."),
    ReassignmentErrorCode.NO_SUCH_DEED: MessageTemplate(
        "“{order_type}” is not an action of this page.", "Reload the page."
    ),
    ReassignmentErrorCode.NO_SUCH_ROW: MessageTemplate("{name} does not move {row}.", _CHOOSE_MOVE),
    ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN: MessageTemplate(
        "#{number} does not move this partition, so it cannot be planned again.", _CHOOSE_MOVE
    ),
    ReassignmentErrorCode.NO_SUCH_PARTITION: MessageTemplate(
        "Change #{number} does not move this partition.", _CHOOSE_MOVE
    ),
    ReassignmentErrorCode.ROW_HAS_ENDED: MessageTemplate(
        "{row} has already ended ({state}), so it cannot be cancelled.", "Propose a rollback to undo completed moves."
    ),
    ReassignmentErrorCode.ROW_BEING_CANCELLED: MessageTemplate(
        "{row} is already being cancelled.", "Wait until the run shows it as cancelled."
    ),
    ReassignmentErrorCode.ROW_DOES_NOT_ASK: MessageTemplate(
        "{row} needs no decision now: its state is {state}.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.NOTHING_IS_SUBMITTED: MessageTemplate(
        "{name} is {state}, so no moves are submitted.", "Resume it first."
    ),
    ReassignmentErrorCode.NO_FOREIGN_THROTTLE: MessageTemplate(
        "{entity} has no throttle set by others that differs from the one of kafkadash.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.RUN_NOT_ENDED: MessageTemplate(
        "#{number} is {state}: a rollback is possible after its run has ended.",
        "Wait until it has ended, or cancel it.",
    ),
    ReassignmentErrorCode.MOVED_NOTHING: MessageTemplate(
        "#{number} moved nothing, or its moves are no longer stored, so there is nothing to roll back.",
        "Use a separate change to move replicas.",
    ),
    ReassignmentErrorCode.NOT_READ_SINCE: MessageTemplate(
        "{cluster} has not been read since that run ended.", "Wait for the next refresh."
    ),
    ReassignmentErrorCode.NO_REPORT: MessageTemplate(
        "Change #{number} has no report: its run has not ended.", "Open the run; its page links the report at the end."
    ),
    ReassignmentErrorCode.NOTHING_TO_REPLAN: MessageTemplate(
        "{row} is {state} and cannot be planned again.", _CHECK_AGAIN
    ),
    ReassignmentErrorCode.NO_OTHER_BROKER: MessageTemplate(
        "No other broker is available to replace {lost}.", "Start a broker or add one, then plan again."
    ),
    # Notices on the page of a run
    ReassignmentErrorCode.CLUSTER_UNREAD: MessageTemplate(
        "The cluster could not be read{again}: {error}", "No moves are submitted until it answers."
    ),
    ReassignmentErrorCode.NOT_READ_YET: MessageTemplate(
        "The cluster has not been read for this run yet.", "No moves are submitted until it answers."
    ),
    ReassignmentErrorCode.NEVER_LOOKED: MessageTemplate(
        "The cluster has not been read for this run yet.", "Check that a worker for runs is running."
    ),
    ReassignmentErrorCode.SHOWN_IS_OLD: MessageTemplate("The figures are {age} old.", _IN_FLIGHT),
    ReassignmentErrorCode.NOBODY_READS: MessageTemplate(
        "No worker reads the cluster, although it is due every {interval:g} s.",
        "Check that a worker for runs is running.",
    ),
    ReassignmentErrorCode.CANCEL_CANNOT_END: MessageTemplate(
        "The cancellation cannot end, and until then no other run starts on this cluster.",
        "An administrator can give up the run.",
    ),
    ReassignmentErrorCode.BROKERS_DOWN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {down} ({since}).",
        "{moves:# unfinished move has|# unfinished moves have} a replica there. Copies to a broker that is down "
        "continue when it is back.",
    ),
    ReassignmentErrorCode.READ_ONLY_NOW: MessageTemplate(
        "{cluster} is read-only now: no further moves are submitted.",
        "Each move in flight {going}. kafkadash still removes the throttles of this run.",
    ),
    ReassignmentErrorCode.PAUSED_AT_ITS_END: MessageTemplate(
        "Paused. All moves have ended.", "Resume the run to verify and end it."
    ),
    ReassignmentErrorCode.WINDOW_RAN_OUT: MessageTemplate(
        "The window is over. {moves:# move|# moves} did not start and will not start.",
        "Cancel the run to end it. Completed moves stay.",
    ),
    ReassignmentErrorCode.ROWS_ASK: MessageTemplate(
        "{moves:# move needs|# moves need} a decision.",
        "The submitted requests left no trace in the cluster. Submit again, or give up.",
    ),
    ReassignmentErrorCode.BLOCKED: MessageTemplate(
        "Blocked{since}: {why}",
        "The change stays queued and approved. kafkadash tries again automatically{until}. Changes to other "
        "partitions do not wait for it. Nothing was sent to Kafka.",
    ),
    ReassignmentErrorCode.NOT_OURS_TO_CANCEL: MessageTemplate(
        "The target {target} was set by others.",
        "kafkadash does not cancel it: the move ends as superseded.",
    ),
    ReassignmentErrorCode.CANCEL_LEAVES_OTHERS: MessageTemplate(
        "A cancel leaves {there}, not the original {original}: others changed the replicas during the move.",
        "A second request restores {original}, and kafkadash verifies it.",
    ),
    ReassignmentErrorCode.OUTCOME_NOT_TOLD: MessageTemplate(
        "The answer of Kafka does not show the result.", "kafkadash reads it again to settle it."
    ),
    ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY: MessageTemplate(
        "Broker {broker} is offline.", "Its throttles are read again when it is back."
    ),
    ReassignmentErrorCode.RUN_STILL_HERE: MessageTemplate(
        "#{number} is running on this cluster.",
        "Cancel it first, so that its throttles are removed: kafkadash never contacts a removed cluster again.",
    ),
    ReassignmentErrorCode.RUN_CANNOT_BE_STOPPED: MessageTemplate(
        "#{number} is running and cannot be stopped: its moves continue in Kafka.",
        "To stop them, use kafka-reassign-partitions --cancel.",
    ),
    ReassignmentErrorCode.THROTTLES_STAY: MessageTemplate(
        "",
        "{throttles:# throttle|# throttles} of #{number} will remain. Remove {throttles:it|them} by hand if needed.",
    ),
    ReassignmentErrorCode.NOT_ALL_AS_PLANNED: MessageTemplate(
        "Some moves did not end as planned.", "The report lists each with its reason."
    ),
    ReassignmentErrorCode.THROTTLES_OWED: MessageTemplate(
        "All partitions match the plan. Some kafkadash throttles could not be removed yet.",
        "kafkadash will try again.",
    ),
    ReassignmentErrorCode.RUN_FAILED: MessageTemplate(
        "Moves that completed before the failure stay.", "The report lists every move."
    ),
    ReassignmentErrorCode.END_NOT_KNOWN: MessageTemplate(
        "The outcome was not recorded.", "See the audit trail for actions and the moves for their results."
    ),
    ReassignmentErrorCode.OURS_REMOVED: MessageTemplate(
        "Others removed throttles set by kafkadash: {places}.", "The next steps set them again."
    ),
    ReassignmentErrorCode.OTHER_RATE_SET: MessageTemplate(
        "Others replaced a rate set by kafkadash: {places}.", "kafkadash no longer adjusts it."
    ),
    ReassignmentErrorCode.OTHERS_LEFT: MessageTemplate(
        "Throttles changed by others were left in place: {places}.", "Ask who set them before you remove them."
    ),
    ReassignmentErrorCode.CALL_CAME_LATE: MessageTemplate(
        "A lost call reached Kafka late: {places}.", "kafkadash removes its effect when the run does not need it."
    ),
    ReassignmentErrorCode.CLEARED: MessageTemplate("All obligations of the run are cleared.", "Nothing is left to do."),
    ReassignmentErrorCode.CLEARED_READ_ONLY: MessageTemplate(
        "All obligations of the run are cleared.",
        "{cluster} is read-only; kafkadash removes the throttles of its runs there too.",
    ),
    ReassignmentErrorCode.OWED: MessageTemplate(
        "", "These throttles cannot be read or removed now; kafkadash does it later: {places}."
    ),
    # Work that a worker does for a page or a command
    ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH: MessageTemplate(
        "This file needs more memory or CPU time than one verification may use.",
        "Split it into smaller files, and verify them one after another.",
    ),
    ReassignmentErrorCode.VERIFIER_FAILED: MessageTemplate(
        "The verification process failed (exit code {code}).", "Report the details from the log of the worker."
    ),
    # Commands on the server, and the checks of /readyz
    ReassignmentErrorCode.FILE_NOT_READ: MessageTemplate(
        "{file} cannot be read: {fault}.", "Name a readable file, or - for standard input."
    ),
    ReassignmentErrorCode.FILE_TOO_LONG: MessageTemplate(
        "{file} is larger than {megabytes} MB, the limit.", "Split it, and verify the parts."
    ),
    ReassignmentErrorCode.FILE_NOT_VERIFIED: MessageTemplate(
        "{file} cannot be verified: it has {problems:# problem|# problems}.", "Fix the problems listed above."
    ),
    ReassignmentErrorCode.FILE_REFUSED: MessageTemplate("{file}: {fault}", "Nothing was written."),
    ReassignmentErrorCode.FILE_NOT_WRITTEN: MessageTemplate("{file} cannot be written: {fault}.", "Name another file."),
    ReassignmentErrorCode.ONE_FILE_FOR_BOTH: MessageTemplate(
        "{file} is named for both the plan and the report.", "Name a separate file for each."
    ),
    ReassignmentErrorCode.NO_REPORT_OF_A_PLAN: MessageTemplate(
        "{file} is not the report of a plan.", "Name the report that `manage.py plan` wrote with the plan."
    ),
    ReassignmentErrorCode.NO_PLAN_GIVEN: MessageTemplate(
        "The mode {mode} needs a plan to start from.", "Name its file, in Kafka’s format, with --plan."
    ),
    ReassignmentErrorCode.OPTION_NO_IDS: MessageTemplate(
        "{option} is “{given}”, which is not a list of broker IDs.", "Use whole numbers, such as 3,4."
    ),
    ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER: MessageTemplate(
        "{option} is “{given}”, which is not a whole number up to 2,147,483,647.", "Use a number such as 3."
    ),
    ReassignmentErrorCode.OPTION_NO_SHARE: MessageTemplate(
        "{option} is “{given}”, which is not a number.", "Use a fraction from 0 to 1, such as 0.8."
    ),
    ReassignmentErrorCode.DISK_USE_RECKONED: MessageTemplate(
        "The disk usage of {brokers:broker|brokers} {brokers:few} is unknown and computed from replica sizes.",
        "Other files on these disks are not included.",
    ),
    ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN: MessageTemplate(
        "The report belongs to another plan, or to another state of the cluster.",
        "Name the report that was written with this plan.",
    ),
    ReassignmentErrorCode.ROWS_AS_NOW: MessageTemplate(
        "{partitions:# partition of the file already has its|# partitions of the file already have their} target "
        "replicas.",
        "Only the others are checked.",
    ),
}


PLAN_MESSAGES: Mapping[PlanErrorCode, MessageTemplate] = {
    # A request that cannot be planned, or about which something is to be known
    PlanErrorCode.NO_BROKER_NAMED: MessageTemplate("No broker to drain is given.", "Name at least one."),
    PlanErrorCode.BROKERS_UNKNOWN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:is|are} not in this cluster. Its brokers: {known:few}.",
        "Use only brokers of the cluster.",
    ),
    PlanErrorCode.TARGETS_UNKNOWN: MessageTemplate(
        "Target {brokers:broker|brokers} {brokers:few} {brokers:is|are} not in this cluster.",
        "Use only brokers of the cluster.",
    ),
    PlanErrorCode.ALL_WOULD_BE_DRAINED: MessageTemplate(
        "All brokers would be drained, and no broker would be left for the replicas.", "Leave at least one."
    ),
    PlanErrorCode.NO_TARGET: MessageTemplate(
        "No broker can take replicas: all others are offline, fenced, cordoned or excluded.",
        "Bring one of them back, or drain fewer brokers.",
    ),
    PlanErrorCode.NOTHING_TO_DRAIN: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:holds|hold} no replicas, so there is nothing to move.",
        "Choose another broker.",
    ),
    PlanErrorCode.HOLDS_NOTHING: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:holds|hold} no replicas.",
        "The others are drained as requested.",
    ),
    PlanErrorCode.TOO_FEW_BROKERS: MessageTemplate(
        "{topic} has {replicas:# replica|# replicas}, but only {brokers:# broker|# brokers} would be left for them.",
        "Drain fewer brokers, add brokers, or lower the replication factor first.",
    ),
    PlanErrorCode.RACKS_MIXED: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:has|have} no rack but others do, so rack spread cannot be "
        "kept.",
        "Set broker.rack there, or plan without rack awareness.",
    ),
    PlanErrorCode.LAST_OF_A_RACK: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:is|are} the last in {racks:rack|racks} {racks:names} that "
        "can hold replicas. Without {brokers:it|them}, {fewer:fewer_racks}.",
        "Accept fewer racks, or add a broker there.",
    ),
    PlanErrorCode.LEADER_MISSING: MessageTemplate(
        "{partitions:names} {partitions:has|have} no leader, so nothing can be copied.",
        "Bring back an in-sync broker; until then, the move waits.",
    ),
    PlanErrorCode.MOVES_ALREADY: MessageTemplate(
        "{row} is already being reassigned.", "Wait until the reassignment is done, or cancel it."
    ),
    PlanErrorCode.DISK_LIMIT: MessageTemplate(
        "Broker {broker} would reach {share:disk_share} of its disk: {used:bytes} in use and {coming:bytes} more, "
        "of {total:bytes}. The limit of {limit:.0f} % leaves room for {room:bytes}.",
        "Free disk space, move less at once, or raise the disk limit under Limits.",
    ),
    PlanErrorCode.DISK_LIMIT_OF_A_DIRECTORY: MessageTemplate(
        "Broker {broker} would get a replica of {replica:bytes}, but no log directory has room for more than "
        "{room:bytes} (limit {limit:.0f} %).",
        "Free space in one of them, or raise the disk limit under Limits.",
    ),
    PlanErrorCode.DISK_UNJUDGED: MessageTemplate(
        "The disk usage of {brokers:broker|brokers} {brokers:few} is unknown, so the disk limit was not applied there.",
        "See the broker page for the cause.",
    ),
    PlanErrorCode.SIZE_UNJUDGED: MessageTemplate(
        "The size of {partitions:# moving partition|# moving partitions} is unknown and not included in disk usage.",
        "See the broker pages for the cause.",
    ),
    PlanErrorCode.ALL_AS_ASKED: MessageTemplate(
        "{partitions:The only partition of the file already has its|All # partitions of the file already have their} "
        "target replicas.",
        "Nothing is left to do for this file.",
    ),
    PlanErrorCode.SOME_AS_ASKED: MessageTemplate(
        "{partitions:# partition of the file already has its|# partitions of the file already have their} target "
        "replicas.",
        "Only the others are planned.",
    ),
    PlanErrorCode.PARTITION_UNKNOWN: MessageTemplate(
        "Partition {row} does not exist: {topic} has {partitions:# partition|# partitions}, numbered from 0.",
        "Correct it in the file, or remove it.",
    ),
    PlanErrorCode.TOPIC_UNKNOWN: MessageTemplate(
        "Topic {topic} does not exist in this cluster.",
        "Correct it in the file, or remove it.",
        many="Topic {topic} does not exist in this cluster (first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.BROKER_UNKNOWN: MessageTemplate(
        "Broker {broker} does not exist in this cluster.",
        "Use only brokers of the cluster.",
        many="Broker {broker} does not exist in this cluster (first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.BROKER_UNFIT: MessageTemplate(
        "Broker {broker} {why:unfit} and cannot take replicas now.",
        "Use another broker, or wait until it can.",
        many="Broker {broker} {why:unfit} and cannot take replicas now (first of {entries:,} entries).",
        by="entries",
    ),
    PlanErrorCode.KEPT_ON_ONE_AWAY: MessageTemplate(
        "{partitions:# partition keeps|# partitions keep} a replica on broker {broker}, which is offline. Kafka may "
        "list the moves until it is back.",
        "Start the broker first, or plan these replicas elsewhere too.",
    ),
    PlanErrorCode.OTHER_FACTOR: MessageTemplate(
        "{row} has {replicas:# replica|# replicas} and would have {target:,}.",
        "If intended, allow replication factor changes.",
    ),
    PlanErrorCode.DIRECTORY_UNKNOWN: MessageTemplate(
        "{row}: broker {broker} has no log directory {path}; it has {paths:names}.", 'Use one of these, or "any".'
    ),
    PlanErrorCode.DIRECTORIES_ONLY: MessageTemplate(
        "{row} keeps its brokers and changes only log directories; kafkadash plans only moves between brokers.",
        "Use kafka-reassign-partitions to move replicas between disks.",
    ),
    PlanErrorCode.DIRECTORY_OF_ONE_THAT_STAYS: MessageTemplate(
        "{row}: broker {broker} keeps its replica, but the file names the directory {path} for it.",
        'kafkadash sets directories only for new replicas: use "any" for others.',
    ),
    PlanErrorCode.NO_BROKERS_TO_ADD: MessageTemplate("No new broker is given.", "Name the brokers that were added."),
    PlanErrorCode.NO_BROKERS_TO_REPLACE: MessageTemplate("No broker to replace is given.", "Name at least one."),
    PlanErrorCode.NO_REPLACEMENTS: MessageTemplate(
        "No replacement is given for {brokers:broker|brokers} {brokers:few}.", "Name at least one."
    ),
    PlanErrorCode.REPLACED_BY_ITSELF: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:is|are} given as replaced and as replacement.",
        "Name each broker on one side only.",
    ),
    PlanErrorCode.NO_FACTOR: MessageTemplate("No replication factor is given.", "Enter a replication factor."),
    PlanErrorCode.FACTOR_TOO_LOW: MessageTemplate(
        "Replication factor {factor} leaves partitions without replicas.", "Use 1 or higher."
    ),
    PlanErrorCode.FACTOR_TOO_HIGH: MessageTemplate(
        "Replication factor {factor} needs as many brokers, but only {brokers:,} can hold replicas.",
        "Use {brokers:,} or lower, or add brokers.",
    ),
    PlanErrorCode.PATTERN_WRONG: MessageTemplate(
        "“{pattern}” is not a valid regular expression: {fault}.", "Correct it; it must match whole names."
    ),
    PlanErrorCode.NO_TOPIC_CHOSEN: MessageTemplate(
        "“{pattern}” matches none of {topics:# topic|# topics}.",
        "Choose other topics; a regular expression must match whole names.",
    ),
    PlanErrorCode.ALL_TOPICS_EXCLUDED: MessageTemplate(
        "“{pattern}” excludes every selected topic; the cluster has {topics:# topic|# topics}.",
        "Choose other topics; a regular expression must match whole names.",
    ),
    PlanErrorCode.TOPICS_UNKNOWN: MessageTemplate(
        "{topics:Topic|Topics} {topics:names} {topics:does|do} not exist in this cluster.",
        "Use only topics of the cluster.",
    ),
    PlanErrorCode.EPS_OUTSIDE: MessageTemplate(
        "{eps:g} is not a valid deviation of disk usage from the mean.", "Use a fraction from 0 to 1; 0.05 means 5 %."
    ),
    PlanErrorCode.DISK_LIMIT_OUTSIDE: MessageTemplate(
        "{limit:g} is not a valid disk limit.", "Use a fraction from 0 to 1; 0.8 means 80 %."
    ),
    PlanErrorCode.DISK_LIMIT_PASSED: MessageTemplate(
        "Broker {broker} uses {share:disk_share} of its disk ({used:bytes} of {total:bytes}), above the disk limit of "
        "{limit:g} %.",
        "Raise the limit, free disk space, or allow only other brokers as targets.",
        many="{over:,} brokers are above the disk limit of {limit:g} %. Broker {broker} is fullest with "
        "{share:disk_share} ({used:bytes} of {total:bytes}).",
        by="over",
    ),
    PlanErrorCode.MOST_REPLICAS_TOO_LOW: MessageTemplate(
        "A maximum of {most} replicas per broker allows no replicas.", "Use 1 or higher."
    ),
    PlanErrorCode.GONE_LEFT_OUT: MessageTemplate(
        "{partitions:names} {partitions:is|are} no longer in this cluster.",
        "Only the rest of the earlier plan is planned.",
    ),
    PlanErrorCode.NOTHING_LEFT_TO_FINISH: MessageTemplate(
        "Every partition of the earlier plan is already moving, or is no longer in this cluster.",
        "Plan again when these moves are done.",
    ),
    # A placement that cannot be had, or not as it was asked for
    PlanErrorCode.KEEPS_MORE_THAN_ALLOWED: MessageTemplate(
        "Broker {broker} keeps {replicas:# replica|# replicas}, above the maximum of {most} per broker.",
        "Raise the maximum, or let other replicas move too.",
    ),
    PlanErrorCode.NO_ROOM_AT_THE_MAXIMUM: MessageTemplate(
        "With a maximum of {most} replicas per broker there is room for {room:,} of {total:,} replicas.",
        "Raise the maximum, or add brokers.",
    ),
    PlanErrorCode.MOVING_LEFT_OUT: MessageTemplate(
        "{partitions:names} {partitions:is|are} already being reassigned and excluded from this plan.",
        "Plan again when the reassignment is done.",
    ),
    PlanErrorCode.AS_EVEN_AS_POSSIBLE: MessageTemplate(
        "Brokers do not get even shares of the replicas: {brokers:uneven_brokers}.",
        "Let other replicas move too, or add a broker to the rack with too few.",
    ),
    PlanErrorCode.LEFT_ON_ONE_DOWN: MessageTemplate(
        "{replicas:# replica stays|# replicas stay} on broker {broker}, which {why:unfit}.",
        "Drain the broker, unless it comes back.",
    ),
    PlanErrorCode.REPLACEMENT_HOLDS_IT: MessageTemplate(
        "{partitions:names} {partitions:is|are} already on {brokers:broker|brokers} {brokers:few}, so a leaving "
        "replica has no place.",
        "Name more replacements, or let other replicas move too.",
    ),
    PlanErrorCode.OUTSIDE_FOR_A_LARGE_ONE: MessageTemplate(
        "Broker {broker} would hold {held:bytes}; the mean of its rack is {mean:bytes}. {partition} alone exceeds the "
        "allowed deviation.",
        "Split that topic into more partitions, or accept the plan.",
    ),
    PlanErrorCode.OUTSIDE_FOR_THE_REST: MessageTemplate(
        "Broker {broker} would hold {held:bytes}; the mean of its rack is {mean:bytes}. Large partitions leave less "
        "for the other brokers.",
        "Accept the plan, or split those topics into more partitions.",
    ),
    PlanErrorCode.OUTSIDE_AND_STUCK: MessageTemplate(
        "Broker {broker} would hold {held:bytes}; the mean of its rack is {mean:bytes}. Too few partitions may move, "
        "or disk space is missing.",
        "Let more topics move, or raise the disk limit.",
    ),
    PlanErrorCode.MORE_OUTSIDE: MessageTemplate(
        "{brokers:# more broker|# more brokers} could not be brought within the requested deviation.",
        "The table of brokers lists them.",
    ),
    # The planner, and stored plans
    PlanErrorCode.PLANNER_OUT_OF_MEMORY: MessageTemplate(
        "Planning needs more than {most:.1f} GB of memory, the limit for one plan.",
        "Split the change into smaller ones, or raise the limit.",
    ),
    PlanErrorCode.PLAN_OF_ANOTHER_FORMAT: MessageTemplate(
        "The plan has format {found}; this version reads format {own}.",
        "Plan again, or use the version that created the plan.",
    ),
    PlanErrorCode.PLAN_NOT_READABLE: MessageTemplate("The stored plan cannot be read: {error}.", _PLAN_AGAIN),
}

_UNFIT = {
    UnfitReason.AWAY: "is offline",
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
            words.append(f"broker {broker} has {has:,} instead of {even:,}")
    return "; ".join(words)


PLAN_WRITERS: Mapping[str, Writer] = {
    "unfit": lambda reason: _UNFIT[UnfitReason(reason)],
    "fewer_racks": _fewer_racks,
    "uneven_brokers": _uneven_brokers,
    "disk_share": lambda share: "more than 100 %" if share is None else f"{100 * share:.1f} %",
}


FILE_MESSAGES: Mapping[FileErrorCode, MessageTemplate] = {
    # Kafka's JSON of an assignment
    FileErrorCode.MARK_IGNORED: MessageTemplate("The file starts with a byte order mark.", "kafkadash ignores it."),
    FileErrorCode.UTF_16: MessageTemplate("The file is UTF-16; Kafka requires UTF-8.", "Save it as UTF-8."),
    FileErrorCode.NOT_UTF_8: MessageTemplate(
        "The file is not UTF-8: byte 0x{byte:02x} is invalid here.", "Save it as UTF-8."
    ),
    FileErrorCode.NOTHING_IN_IT: MessageTemplate("The file is empty.", "Choose a reassignment JSON file."),
    FileErrorCode.NOT_JSON: MessageTemplate("This is not valid JSON: {fault}.", "Fix and upload again."),
    FileErrorCode.GENERATED: MessageTemplate(
        "This is the whole output of kafka-reassign-partitions --generate.", "Keep only the JSON below “{heading}”."
    ),
    FileErrorCode.NO_OBJECT: MessageTemplate(
        'The file contains {found}, not an object with "version" and "partitions".', "Use Kafka’s reassignment JSON."
    ),
    FileErrorCode.TOPICS_TO_MOVE: MessageTemplate(
        "This is a list of topics to move, the input of kafka-reassign-partitions --generate.",
        'Upload its result, with "partitions".',
    ),
    FileErrorCode.NOTHING_ASKED_FOR: MessageTemplate(
        "{field} is an empty list, so there is nothing to do.", "Add the partitions to move."
    ),
    FileErrorCode.OTHER_VERSION: MessageTemplate(
        "{field} is {found}; Kafka supports only version 1.", "Set it to 1 if the file has that format."
    ),
    FileErrorCode.VERSION_MISSING: MessageTemplate(
        'The file has no "version".', "kafkadash reads the file as version 1, as Kafka’s tool does."
    ),
    FileErrorCode.FIELD_UNKNOWN: MessageTemplate(
        "{field} is not a field of Kafka’s format.",
        "kafkadash ignores it, as Kafka’s tool does.",
        many="{field} is not a field of Kafka’s format (first of {times:,} times).",
        by="times",
    ),
    FileErrorCode.FIELD_MISSING: MessageTemplate("{where} has no {field}.", "Add the field."),
    FileErrorCode.FIELD_OF_OTHER_SHAPE: MessageTemplate("", "{field} is {found}; it must be {wanted}."),
    FileErrorCode.FIELD_TWICE: MessageTemplate("The entry has {field} more than once.", "Keep one of them."),
    FileErrorCode.STANDS_TWICE: MessageTemplate(
        "{again} appears more than once; the first is on line {line:,}.", "Keep one of them."
    ),
    FileErrorCode.TOO_MANY_PROBLEMS: MessageTemplate(
        "The file has {most:,} problems up to line {line:,}; the rest was not read.",
        "Fix these, then upload the file again.",
    ),
    FileErrorCode.NO_NAME_OF_A_TOPIC: MessageTemplate(
        "{field} is {found}, which is not a valid topic name.", "Use the name of a topic."
    ),
    FileErrorCode.NO_REPLICAS: MessageTemplate("{row} has an empty list of replicas.", "List its target brokers."),
    FileErrorCode.NO_ID_OF_A_BROKER: MessageTemplate(
        "{row}: {found} is not a broker ID.",
        "IDs are whole numbers, 0 or higher.",
        many="{row}: {wrong:,} of its replicas are not broker IDs; the first is {found}.",
        by="wrong",
    ),
    FileErrorCode.REPLICA_TWICE: MessageTemplate(
        "{row} lists broker {broker} {times:times} in its replicas.", "Keep it once."
    ),
    FileErrorCode.DIRECTORIES_NO_LIST: MessageTemplate(
        "", '{row}: {field} must be a list of paths or "any", one for each replica.'
    ),
    FileErrorCode.DIRECTORIES_NOT_AS_MANY: MessageTemplate(
        "",
        "{row} has {replicas:# replica|# replicas} and {directories:# log directory|# log directories}; it must "
        "have one for each replica.",
    ),
    FileErrorCode.DIRECTORY_NOT_ABSOLUTE: MessageTemplate(
        "", '{row}: a log directory must be an absolute path or "any".'
    ),
    FileErrorCode.DIRECTORY_IMPOSSIBLE: MessageTemplate(
        "{row}: {path} is not a valid log directory: too long, or not printable.", "Use a directory of the broker."
    ),
    # An exported topology
    FileErrorCode.TOPOLOGY_NOT_UTF_8: MessageTemplate("The topology is not UTF-8.", "Export it again."),
    FileErrorCode.TOPOLOGY_NOT_JSON: MessageTemplate("The topology is not JSON: {error}.", "Export it again."),
    FileErrorCode.TOPOLOGY_TWICE: MessageTemplate("{one} is in the topology twice.", "Keep it once."),
    FileErrorCode.TOPOLOGY_PARTITION_TWICE: MessageTemplate(
        "{where} has partition {partition} twice.", "Keep it once."
    ),
    FileErrorCode.TOPOLOGY_TOO_LARGE: MessageTemplate(
        "The replicas have {total:bytes} in total; the limit is {most:bytes}.", "Check that sizes are in bytes."
    ),
    FileErrorCode.TOPOLOGY_SHAPE: MessageTemplate("", "{field} must be {wanted}."),
}

FILE_PARTS: Mapping[FilePart, MessageTemplate] = {
    FilePart.OBJECT: MessageTemplate("an object"),
    FilePart.LIST: MessageTemplate("a list"),
    FilePart.TEXT: MessageTemplate("a string"),
    FilePart.NULL: MessageTemplate("null"),
    FilePart.NUMBER: MessageTemplate("a number"),
    FilePart.TRUE_OR_FALSE: MessageTemplate("true or false"),
    FilePart.LIST_OF_OBJECTS: MessageTemplate("a list of objects"),
    FilePart.LIST_OF_BROKERS: MessageTemplate("a list of broker IDs"),
    FilePart.LIST_OF_REPLICAS: MessageTemplate("a list of at least one broker, without duplicates"),
    FilePart.QUOTED_NAME: MessageTemplate("a name in quotes"),
    FilePart.WHOLE_NUMBER: MessageTemplate("a whole number, 0 or higher"),
    FilePart.AT_MOST: MessageTemplate("at most {most:,}"),
    FilePart.POSITIVE_NUMBER: MessageTemplate("a number, 0 or higher"),
    FilePart.TEXT_OR_NULL: MessageTemplate("a string or null"),
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
    JsonFault.TEXT_NOT_ENDED: MessageTemplate("the string that starts here has no end"),
    JsonFault.CONTROL_CHARACTER: MessageTemplate("a string contains a control character here, such as a line break"),
    JsonFault.COMMA_BEFORE_END: MessageTemplate("nothing follows the comma here"),
    JsonFault.SOMETHING_FOLLOWS: MessageTemplate("more text follows the end of the object"),
    JsonFault.TOO_LONG: MessageTemplate("the value that starts here has more than {most:,} characters"),
    JsonFault.ENDS_IN_THE_MIDDLE: MessageTemplate("the file ends too early"),
    JsonFault.NESTED_TOO_DEEPLY: MessageTemplate("lists or objects are nested too deeply here"),
    JsonFault.NO_CONSTANT: MessageTemplate("{name} is not a JSON number"),
    JsonFault.TOO_MANY_DIGITS: MessageTemplate("a number here has thousands of digits"),
    JsonFault.OTHER_FAULT: MessageTemplate("{words}"),
}

FILE_WRITERS: Mapping[str, Writer] = {"times": lambda times: "twice" if times == 2 else f"{times} times"}


CHECK_MESSAGES: Mapping[CheckErrorCode, MessageTemplate] = {
    # The checker of plans
    CheckErrorCode.ROW_TWICE: MessageTemplate("{row} is in the plan twice.", REPORT),
    CheckErrorCode.ROW_OF_NOTHING: MessageTemplate("Partition {row} does not exist.", REPORT),
    CheckErrorCode.ROW_OF_NAMESAKE: MessageTemplate("{row} belongs to another topic of the same name.", REPORT),
    CheckErrorCode.ROW_ELSEWHERE: MessageTemplate(
        "{row} has replicas {there:brokers}, but the plan starts from {expected:brokers}.", REPORT
    ),
    CheckErrorCode.ROW_CHANGES_DISK: MessageTemplate(
        "{row} would stay on broker {broker} and move to {path}; kafkadash does not run disk moves.", REPORT
    ),
    CheckErrorCode.ROW_CHANGES_NOTHING: MessageTemplate("{row} changes nothing.", REPORT),
    CheckErrorCode.ROW_MOVES_ALREADY: MessageTemplate("{row} is already being reassigned.", REPORT),
    CheckErrorCode.ROW_WITH_OTHER_FACTOR: MessageTemplate(
        "{row} would have {after} replicas instead of {before}.", REPORT
    ),
    CheckErrorCode.ROW_WITHOUT_REPLICAS: MessageTemplate("{row} would have no replicas.", REPORT),
    CheckErrorCode.ROW_TWICE_ON_ONE: MessageTemplate(
        "{row} would have two replicas on one broker: {brokers:brokers}.", REPORT
    ),
    CheckErrorCode.ROW_ON_INELIGIBLE: MessageTemplate(
        "{row} would get a replica on broker {broker}, which cannot take replicas.", REPORT
    ),
    CheckErrorCode.ROW_LEAVES_OTHERS: MessageTemplate(
        "{row} would leave {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} not drained.", REPORT
    ),
    CheckErrorCode.ROW_ON_DRAINED: MessageTemplate(
        "{row} would be on {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} drained.", REPORT
    ),
    CheckErrorCode.ROW_ON_LEFT_OUT: MessageTemplate(
        "{row} would go to {brokers:broker|brokers} {brokers:brokers}, which {brokers:is|are} excluded.", REPORT
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
    CheckErrorCode.ROW_OUTSIDE: MessageTemplate("{row} is not among the partitions to plan.", REPORT),
    CheckErrorCode.ROW_TAKES_WHAT_STAYS: MessageTemplate(
        "{row} would leave broker {broker}, where it must stay.", REPORT
    ),
    CheckErrorCode.ROW_KEEPS_WHAT_LEAVES: MessageTemplate(
        "{row} would stay on broker {broker}, which it must leave.", REPORT
    ),
    CheckErrorCode.ROW_WITH_WRONG_FACTOR: MessageTemplate("{row} would not have {factor} replicas.", REPORT),
    CheckErrorCode.ROW_UNEVEN_IN_RACK: MessageTemplate(
        "{row} would have {held:# replica|# replicas} in rack {rack} instead of {wanted:range}.", REPORT
    ),
    CheckErrorCode.BROKER_OUT_OF_BOUNDS: MessageTemplate(
        "Broker {broker} would hold {replicas:# replica|# replicas}; an even share is {low:,} to {high:,}.", REPORT
    ),
    CheckErrorCode.NO_PLAN_MEETS_IT: MessageTemplate(
        "No plan can satisfy the request for {partitions:# partition|# partitions}.", REPORT
    ),
    CheckErrorCode.BOUND_DIFFERS: MessageTemplate(
        "The certificate proves a bound of {proven:exact_bytes}, but the report has {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.BROKER_NOT_WITHIN_EPS: MessageTemplate(
        "Broker {broker} would hold {held:bytes}, not within {eps:g} % of {mean:bytes}, the mean of its rack.",
        REPORT,
    ),
    CheckErrorCode.MOVED_DIFFERS: MessageTemplate(
        "The moves copy {rows:exact_bytes}, but the proof has {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.BROKER_OVER_LIMIT: MessageTemplate(
        "Broker {broker} would hold {peak:bytes} of {total:bytes} at its peak; the limit is {limit:.0f} %.", REPORT
    ),
    CheckErrorCode.NO_DIRECTORY_HOLDS_IT: MessageTemplate(
        "No directory of broker {broker} has room for a replica of {size:bytes}.", REPORT
    ),
    CheckErrorCode.TOTAL_COPIED_DIFFERS: MessageTemplate(
        "The moves copy {rows:exact_bytes}, but the report has {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.TOTAL_ROWS_DIFFERS: MessageTemplate(
        "The plan has {rows:,} partitions, but the report has {report:,}.", REPORT
    ),
    CheckErrorCode.TOTAL_OF_BROKER_DIFFERS: MessageTemplate(
        "Broker {broker} receives {rows:exact_bytes}, but the report has {report:exact_bytes}.", REPORT
    ),
    CheckErrorCode.MORE_FAULTS: MessageTemplate("And {more:,} more.", REPORT),
    CheckErrorCode.BROKERS_WITHOUT_RACK: MessageTemplate(
        "Brokers without a rack: {brokers:brokers}.", "Set broker.rack there, or check the spread yourself."
    ),
    # The checks of a reassignment before it runs
    CheckErrorCode.GONE: MessageTemplate("{name} no longer exists.", _PLAN_AGAIN),
    CheckErrorCode.TOPIC_REPLACED: MessageTemplate(
        "{topic} was deleted and created again since planning.", _PLAN_AGAIN
    ),
    CheckErrorCode.AS_PLANNED_ALREADY: MessageTemplate(
        "{row} already has its target replicas {replicas:brokers}; the plan starts from {expected:brokers}.",
        _PLAN_AGAIN,
    ),
    CheckErrorCode.OTHER_THAN_PLANNED: MessageTemplate(
        "{row} has replicas {replicas:brokers}, but the plan starts from {expected:brokers}.", _PLAN_AGAIN
    ),
    CheckErrorCode.MOVING_BY_OTHERS: MessageTemplate(
        "{row} is being reassigned by others (adding {adding:few}, removing {removing:few}).",
        "Wait until the reassignment is done or cancel it, then plan again.",
    ),
    CheckErrorCode.FACTOR_CHANGES: MessageTemplate(
        "{row} has {replicas:# replica|# replicas} and would have {target}.",
        "Plan again. If intended, allow replication factor changes.",
    ),
    CheckErrorCode.FACTOR_UNDER_MIN_ISR: MessageTemplate(
        "{row} would have {target:# replica|# replicas}, fewer than its min-ISR of {needed}.",
        "Lower min.insync.replicas first, or plan with more replicas.",
    ),
    CheckErrorCode.TARGET_NOT_REGISTERED: MessageTemplate(
        "The cluster does not list broker {broker}; moves to it would never finish.", "Start it, or plan without it."
    ),
    CheckErrorCode.TARGET_FENCED: MessageTemplate(
        "Broker {broker} is fenced; moves to it would never finish.",
        "Find out why the controller fences it, or plan without it.",
    ),
    CheckErrorCode.TARGET_SILENT: MessageTemplate(
        "Broker {broker} does not answer; moves to it may never finish.",
        "See the cause on its page, or plan without it.",
    ),
    CheckErrorCode.TARGET_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or plan without it."
    ),
    CheckErrorCode.DIRECTORIES_UNREAD: MessageTemplate(
        "The log directories of {brokers:broker|brokers} {brokers:few} were not read.",
        "See the broker page for the cause.",
    ),
    CheckErrorCode.QUORUM_LOST: MessageTemplate(
        "The quorum is lost: Kafka accepts no changes until a majority of controllers is back.",
        "See the controllers on the quorum page.",
    ),
    CheckErrorCode.DISK_TOO_SMALL: MessageTemplate(
        "Broker {broker} {share:comes_to}: {coming:bytes} to receive, room for {room:bytes}.",
        "Free disk space, or plan again with other limits.",
    ),
    CheckErrorCode.DIRECTORIES_TOO_SMALL: MessageTemplate(
        "No directory of broker {broker} has room for a replica of {replica:bytes}; the emptiest has room for "
        "{room:bytes}.",
        "Free disk space, or plan again with other limits.",
    ),
    CheckErrorCode.DISK_NOT_KNOWN: MessageTemplate(
        "The disk usage of {brokers:broker|brokers} {brokers:few} is unknown.",
        "See the broker page for the cause.",
    ),
    CheckErrorCode.SIZE_NOT_KNOWN: MessageTemplate(
        "The size of {partitions:# partition|# partitions} is unknown.",
        "See the broker pages for the cause.",
    ),
    CheckErrorCode.RACKS_NOT_NAMED: MessageTemplate(
        "Some brokers have no rack, so rack spread is unknown.",
        "Set broker.rack there, or check the spread yourself.",
    ),
    CheckErrorCode.SPREAD_WORSE: MessageTemplate(
        "{row} would be in fewer racks or less evenly spread: {replicas:brokers}.",
        "Plan again with other brokers, or accept fewer racks under Scope.",
    ),
    CheckErrorCode.LEADERLESS: MessageTemplate(
        "{row} has no leader, so nothing can be copied.", "Bring back an in-sync broker."
    ),
    CheckErrorCode.LAGGING: MessageTemplate(
        "{row} is under min-ISR ({in_sync} of {needed} required replicas in sync): {brokers:broker|brokers} "
        "{brokers:few} must catch up first.",
        "Wait, or find out why the broker lags.",
    ),
    CheckErrorCode.MIN_ISR_UNREAD: MessageTemplate(
        "{setting} of {topics:# topic|# topics} was not read.",
        "See the cluster overview for the cause.",
    ),
    CheckErrorCode.THROTTLE_TOO_LOW: MessageTemplate(
        "Producers write {inbound:,.1f} MB/s to the partitions that move to broker {broker}; copies at "
        "{throttle:,.1f} MB/s would never catch up.",
        "Raise the throttle during the run, or plan again with a higher one.",
    ),
    CheckErrorCode.INBOUND_UNKNOWN: MessageTemplate(
        "The produce rate of {partitions:# partition|# partitions} is unknown.",
        "Use a throttle well above the produce rate; you can change it during the run.",
    ),
    CheckErrorCode.WINDOW_HAS_ENDED: MessageTemplate(
        "The window ended at {closed:moment}.", "Plan again with a future window."
    ),
    CheckErrorCode.WINDOW_TOO_SHORT: MessageTemplate(
        "The run needs at least {needs:duration}, but the window is open for {length:duration}.",
        "Moves left at the end do not start. Plan fewer moves, a longer window or a higher throttle.",
    ),
    CheckErrorCode.LENGTH_NOT_KNOWN: MessageTemplate(
        "The duration is unknown because sizes are missing.",
        "See the broker pages for the cause.",
    ),
    CheckErrorCode.FACTS_NEVER_READ: MessageTemplate(
        "The {facts:fact_kind} of the cluster have never been read.",
        "See the cluster overview for the cause.",
    ),
    CheckErrorCode.QUORUM_NEVER_READ: MessageTemplate(
        "The quorum has never been read.", "See the quorum page for the cause."
    ),
    CheckErrorCode.QUORUM_READ_LONG_AGO: MessageTemplate(
        "The quorum data is {ago:duration} old, too old for this check.",
        "See the quorum page for the cause.",
    ),
    CheckErrorCode.FACTS_READ_LONG_AGO: MessageTemplate(
        "The data about {facts:fact_kind} is {ago:duration} old, too old for this check.",
        "See the cluster overview for the cause.",
    ),
}

CHECK_TITLES: Mapping[CheckTitle, MessageTemplate] = {
    CheckTitle.AS_PLANNED: MessageTemplate("All partitions match the plan"),
    CheckTitle.NOT_MOVING: MessageTemplate("No reassignment of these partitions in progress"),
    CheckTitle.FACTOR_KEPT: MessageTemplate("Replication factor unchanged"),
    CheckTitle.FACTOR_AS_ASKED: MessageTemplate("Replication factor changes as requested"),
    CheckTitle.TARGETS_ALIVE: MessageTemplate("All target brokers available, none fenced"),
    CheckTitle.NOT_CORDONED: MessageTemplate("No target broker cordoned"),
    CheckTitle.CONTROLLER_ANSWERS: MessageTemplate("Controller answers"),
    CheckTitle.QUORUM_ANSWERS: MessageTemplate("Controller quorum answers"),
    CheckTitle.DISK_BELOW_LIMIT: MessageTemplate("Disk below {limit:.0f} % during the move"),
    CheckTitle.SPREAD_KEPT: MessageTemplate("Rack spread not worse"),
    CheckTitle.SPREAD_AS_BEFORE: MessageTemplate("Rack spread restored to the state before #{number}"),
    CheckTitle.SPREAD_AS_ACCEPTED: MessageTemplate("Rack spread worse only as accepted"),
    CheckTitle.IN_SYNC: MessageTemplate("No under-min-ISR partition that a move could worsen"),
    CheckTitle.THROTTLE_SUFFICES: MessageTemplate("Throttle above the produce rate"),
    CheckTitle.FITS_WINDOW: MessageTemplate("Run fits the window"),
}

RULE_NAMES: Mapping[RuleCode, MessageTemplate] = {
    RuleCode.CURRENT_ASSIGNMENT: MessageTemplate("current assignment"),
    RuleCode.REPLICATION_FACTOR: MessageTemplate("replication factor"),
    RuleCode.DISTINCT_BROKERS: MessageTemplate("distinct brokers"),
    RuleCode.ELIGIBLE_BROKERS: MessageTemplate("eligible brokers"),
    RuleCode.ONLY_AS_ASKED: MessageTemplate("only requested moves"),
    RuleCode.SPREAD_OVER_RACKS: MessageTemplate("rack spread"),
    RuleCode.COUNTS: MessageTemplate("counts"),
    RuleCode.DISK: MessageTemplate("disk"),
    RuleCode.TOTALS: MessageTemplate("totals"),
    RuleCode.LEAST_MOVEMENT: MessageTemplate("least movement"),
    RuleCode.DISKS_WITHIN_EPS: MessageTemplate("disk balance within eps"),
    RuleCode.PLAN_OF_REPORT: MessageTemplate("plan of the report"),
}


def _range(bounds: Sequence[int]) -> str:
    low, high = bounds
    return f"{low}" if low == high else f"{low} to {high}"


CHECK_WRITERS: Mapping[str, Writer] = {
    "comes_to": lambda share: (
        "has too little disk space" if share is None else f"would reach {100 * share:.1f} % of its disk"
    ),
    "exact_bytes": lambda number: "an unknown amount" if number is None else f"{number:,} B",
    "fact_kind": lambda kind: str(kind).replace("-", " "),
    "range": _range,
}
