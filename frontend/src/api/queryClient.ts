/** The cache of fetched data. Each signed-in person gets a new one, so that no one sees what another person fetched. */
import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./errors";

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: { queries: { retry: (failures, error) => !(error instanceof ApiError) && failures < 3 } },
  });
}
