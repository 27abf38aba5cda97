import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { newQueries } from "./lib/queries";
import { keepShell } from "./shell/offline";
import "./styles/index.css";
import { Boundary, NotShown } from "./ui/Boundary";
import { chooseWords } from "./words";

await chooseWords();
const element = document.getElementById("page");
if (element !== null) {
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={newQueries()}>
        <Boundary instead={<NotShown />}>
          <App />
        </Boundary>
      </QueryClientProvider>
    </StrictMode>,
  );
}
keepShell();
