/** Adding files to a message: each is uploaded at once, and named in the message when that is sent. */
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";
import * as calls from "../api/calls";
import type { Attachment } from "../api/types";
import { toast } from "../ui/toasts";
import { words } from "../words";

const MOST = 10; // files in one message

export interface Adding {
  id: number;
  file: File;
  uploaded: Attachment | null;
}

export function useAdding() {
  const [adding, setAdding] = useState<readonly Adding[]>([]);
  const last = useRef(0);
  const held = useRef(0); // how many there are, for whoever adds more
  useEffect(() => {
    held.current = adding.length;
  }, [adding]);

  const remove = useCallback((id: number) => setAdding((all) => all.filter((each) => each.id !== id)), []);

  const add = useCallback(
    (files: Iterable<File>) => {
      const given = [...files];
      const taken = given.slice(0, MOST - held.current);
      if (taken.length < given.length) toast(words.tooManyFiles(MOST));
      for (const file of taken) {
        const id = ++last.current;
        setAdding((all) => [...all, { id, file, uploaded: null }]);
        calls.upload(file).then(
          (uploaded) => setAdding((all) => all.map((each) => (each.id === id ? { ...each, uploaded } : each))),
          (error: unknown) => {
            remove(id);
            toast(words.uploadFailed(file.name, error instanceof ApiError ? error.message : words.unreachable));
          },
        );
      }
    },
    [remove],
  );

  const clear = useCallback(() => setAdding([]), []);
  return { adding, add, remove, clear };
}
