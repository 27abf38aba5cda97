// Runs before the page is painted: applies the stored theme, so that the page does not flash in the other one, and lets the
// browser load the texts of the reader's language together with the page.
(function (files) {
  function read(key) {
    try {
      return localStorage.getItem("palaver." + key);
    } catch (_) {
      return null; // without storage, the page has the system's theme and the browser's language
    }
  }

  var theme = read("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

  var language = [read("language")].concat(navigator.languages).find(function (locale) {
    return locale && locale.slice(0, 2) in files;
  });
  var file = files[language ? language.slice(0, 2) : "en"];
  if (file === undefined) return; // only a built page has such files
  var link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = file;
  document.head.append(link);
})(document.currentScript.dataset);
