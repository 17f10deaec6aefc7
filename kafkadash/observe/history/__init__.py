"""Taking in what the pipeline made, and reading it for pages. Nothing here is loaded by a page but ``standing``,
``charts`` and the models; PyArrow is imported inside the functions of ``store`` and ``results`` that need it.
"""
