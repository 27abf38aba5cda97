/** The URL that the page is served from, whatever path a proxy gives it. */

// Built scripts are in `assets/`, one level below it. Vite would take `new URL("../", import.meta.url)` for an asset, so the
// URL of the script has a name of its own.
const scriptUrl = import.meta.url;

export const baseUrl = import.meta.env.DEV ? new URL("/", location.href) : new URL("../", scriptUrl);
