/** What is fetched and kept for a while. Whoever signs in has their own, so that nobody sees what another has fetched. */
import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "../api/client";

export function newQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: { queries: { retry: (failures, error) => !(error instanceof ApiError) && failures < 3 } },
  });
}
