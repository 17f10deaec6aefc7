from django.urls import path

from kafkadash.changes import policy as policy_views
from kafkadash.changes import step_pages, views
from kafkadash.changes import views as verbs

app_name = "changes"

urlpatterns = [
    path("changes/", views.changes, name="list"),
    path("changes/<int:number>/", views.review, name="request"),
    path("changes/<int:number>/approve/", verbs.approve, name="approve"),
    path("changes/<int:number>/steps/", step_pages.steps, name="steps"),
    path("changes/<int:number>/steps/approve/", step_pages.approve, name="approve_steps"),
    path("changes/<int:number>/decline/", verbs.decline, name="decline"),
    path("changes/<int:number>/start/", verbs.start, name="start"),
    path("changes/<int:number>/break-glass/", verbs.break_glass, name="break_glass"),
    path("changes/<int:number>/withdraw/", verbs.withdraw, name="withdraw"),
    path("changes/<int:number>/comment/", verbs.comment, name="comment"),
    path("changes/<int:number>/refresh/", verbs.refresh, name="refresh"),
    path("changes/<int:number>/copy/", verbs.copy, name="copy"),
    path("changes/<int:number>/edit/", verbs.edit, name="edit"),
    path("changes/<int:number>/delete/", verbs.delete, name="delete"),
    path("settings/clusters/<slug:slug>/policy/", policy_views.policy, name="policy"),
]
