import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { ApiError } from "./api/client";
import { keepShell } from "./shell/offline";
import "./styles/index.css";
import { Boundary, NotShown } from "./ui/Boundary";
import { chooseWords } from "./words";

const client = new QueryClient({
  defaultOptions: { queries: { retry: (failures, error) => !(error instanceof ApiError) && failures < 3 } },
});

await chooseWords();
const element = document.getElementById("page");
if (element !== null) {
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Boundary instead={<NotShown />}>
          <App />
        </Boundary>
      </QueryClientProvider>
    </StrictMode>,
  );
}
keepShell();
