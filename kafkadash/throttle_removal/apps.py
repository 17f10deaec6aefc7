from django.apps import AppConfig


class ThrottleRemovalConfig(AppConfig):
    name = "kafkadash.throttle_removal"
    label = "throttle_removal"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.throttle_removal import kind
        from kafkadash.throttle_removal.messages import REMOVAL_MESSAGES, REMOVAL_NOTE_MESSAGES, REMOVAL_TITLES

        kind.make_known()
        register_messages(REMOVAL_NOTE_MESSAGES)
        register_messages(REMOVAL_MESSAGES)
        register_messages(REMOVAL_TITLES)
