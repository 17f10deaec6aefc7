from django.urls import path

from kafkadash.notifications import pages

app_name = "notifications"

urlpatterns = [
    path("settings/notifications/", pages.notifications, name="list"),
    path("settings/notifications/new/<slug:service>/", pages.new_receiver, name="new"),
    path("settings/notifications/<int:receiver>/", pages.show_receiver, name="receiver"),
    path("settings/notifications/<int:receiver>/routes/", pages.new_route, name="add_route"),
    path("settings/notifications/<int:receiver>/routes/remove/", pages.remove_own_route, name="remove_route"),
    path("settings/notifications/<int:receiver>/test/", pages.test_receiver, name="test"),
    path("settings/notifications/<int:receiver>/key/", pages.renew, name="renew_key"),
    path("settings/notifications/<int:receiver>/remove/", pages.remove, name="remove"),
]
