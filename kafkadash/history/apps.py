from django.apps import AppConfig


class HistoryConfig(AppConfig):
    name = "kafkadash.history"
    label = "history"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.history.messages import HISTORY_MESSAGES

        register_messages(HISTORY_MESSAGES)
