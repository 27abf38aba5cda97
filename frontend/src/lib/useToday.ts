/**
 * The day that it is where the reader is, as the moment it began. It changes at midnight, and when somebody comes back to a
 * page that has slept over it.
 */
import { useEffect, useState } from "react";

const OFTEN = 60_000; // milliseconds

export function useToday(): number {
  const [today, setToday] = useState(beginning);
  useEffect(() => {
    const look = () => setToday(beginning());
    const timer = setInterval(look, OFTEN);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return today;
}

function beginning(): number {
  return new Date().setHours(0, 0, 0, 0);
}
