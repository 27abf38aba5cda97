import "../styles/index.css"; // first: the style sheets of components come after it
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "../api/queryClient";
import { ErrorBoundary, LoadError } from "../ui/ErrorBoundary";
import { loadWords } from "../words";
import { App } from "./App";
import { registerServiceWorker } from "./serviceWorker";

await loadWords();
const element = document.getElementById("page");
if (element !== null) {
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={createQueryClient()}>
        <ErrorBoundary fallback={<LoadError />}>
          <App />
        </ErrorBoundary>
      </QueryClientProvider>
    </StrictMode>,
  );
}
registerServiceWorker();
