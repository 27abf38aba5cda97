// Runs before the page is painted: applies the stored theme, so that the page does not flash in the other one.
(function () {
  try {
    var theme = localStorage.getItem("palaver.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (_) {
    // Without storage, the page has the system's theme.
  }
})();
