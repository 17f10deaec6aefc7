from django.apps import AppConfig


class TimelineConfig(AppConfig):
    name = "kafkadash.timeline"
    label = "timeline"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.timeline.messages import EVENT_MESSAGES, TIMELINE_ERROR_MESSAGES, TIMELINE_MESSAGES

        register_messages(EVENT_MESSAGES)
        register_messages(TIMELINE_MESSAGES)
        register_messages(TIMELINE_ERROR_MESSAGES)
