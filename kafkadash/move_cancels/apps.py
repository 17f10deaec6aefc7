from django.apps import AppConfig


class MoveCancelsConfig(AppConfig):
    name = "kafkadash.move_cancels"
    label = "move_cancels"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.move_cancels import kind
        from kafkadash.move_cancels.messages import CANCEL_MESSAGES, CANCEL_NOTE_MESSAGES, CANCEL_TITLES

        kind.make_known()
        register_messages(CANCEL_NOTE_MESSAGES)
        register_messages(CANCEL_MESSAGES)
        register_messages(CANCEL_TITLES)
