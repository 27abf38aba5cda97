/**
 * The start of the current day in the reader's time zone. It changes at midnight, or when the reader returns to a page that
 * slept past midnight.
 */
import { useEffect, useState } from "react";

const CHECK_INTERVAL_MS = 60_000;

export function useToday(): number {
  const [today, setToday] = useState(getStartOfDay);
  useEffect(() => {
    const updateToday = () => setToday(getStartOfDay());
    const timer = setInterval(updateToday, CHECK_INTERVAL_MS);
    document.addEventListener("visibilitychange", updateToday);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", updateToday);
    };
  }, []);
  return today;
}

function getStartOfDay(): number {
  return new Date().setHours(0, 0, 0, 0);
}
