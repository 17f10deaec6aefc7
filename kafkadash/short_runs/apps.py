from django.apps import AppConfig


class ShortRunsConfig(AppConfig):
    name = "kafkadash.short_runs"
    label = "short_runs"

    def ready(self) -> None:
        from kafkadash.clusters.removal import ask_before_removal
        from kafkadash.core.messages import register_messages
        from kafkadash.short_runs import validation
        from kafkadash.short_runs.messages import (
            ITEM_MESSAGES,
            SHORT_CHECK_TITLES,
            SHORT_RUN_ERROR_MESSAGES,
            SHORT_RUN_MESSAGES,
        )
        from kafkadash.short_runs.removal import left_behind, stop_runs

        ask_before_removal(left_behind, stop_runs)
        validation.make_known()
        register_messages(SHORT_CHECK_TITLES)
        register_messages(SHORT_RUN_ERROR_MESSAGES)
        register_messages(SHORT_RUN_MESSAGES)
        register_messages(ITEM_MESSAGES)
