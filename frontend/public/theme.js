// Before anything is painted: the theme somebody has chosen, so that no page flashes in the other one.
(function () {
  try {
    var chosen = localStorage.getItem("palaver.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (_) {
    // Without storage the system's theme holds.
  }
})();
