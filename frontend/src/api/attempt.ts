/** Runs a request for a person who pressed a button, and tells them if it failed. */
import { toast } from "../ui/toasts";
import { ApiError, describeError, UnreachableError } from "./errors";

/** Returns whether `act` worked. A failed request shows a toast; any other error is a bug and is thrown on. */
export async function attempt(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof UnreachableError) && !(error instanceof ApiError)) throw error;
    toast(describeError(error));
    return false;
  }
}
