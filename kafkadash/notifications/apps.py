from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "kafkadash.notifications"
    label = "notifications"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.notifications.messages import DELIVERY_MESSAGES, NOTIFICATION_MESSAGES

        register_messages(NOTIFICATION_MESSAGES)
        register_messages(DELIVERY_MESSAGES)
