/** The panel of jobs: prompts that run on a schedule, what waits for confirmation, and how their runs went. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useStore } from "../../lib/store";
import { useLiveClient, useMe } from "../../live/context";
import { PlusIcon } from "../../ui/icons";
import { words } from "../../words";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import type { Job } from "./jobCalls";
import * as calls from "./jobCalls";
import { JobDialog } from "./JobDialog";
import { JobRow } from "./JobRow";
import "./jobs.css";

const JOBS_KEY = ["jobs"];
const FIRST_PAGE: string | null = null;
const REFRESH_INTERVAL_MS = 15_000; // while the panel is open
const QUICK_INTERVAL_MS = 2_000; // while a run is under way

export default function JobsPanel() {
  const me = useMe();
  const showsAll = useStore(useLiveClient().showsAll);
  const queryClient = useQueryClient();
  const [edited, setEdited] = useState<Job | "new" | null>(null);
  const query = useInfiniteQuery({
    queryKey: [...JOBS_KEY, showsAll],
    queryFn: ({ pageParam }) => calls.listJobs(showsAll, pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.jobs.some(isRunning)) ? QUICK_INTERVAL_MS : REFRESH_INTERVAL_MS),
  });
  const refresh = () => queryClient.invalidateQueries({ queryKey: JOBS_KEY });
  const canCreate = me.person.role !== "guest";
  const newButton = (
    <button type="button" className="button primary" onClick={() => setEdited("new")}>
      <PlusIcon />
      {words.jobsNew}
    </button>
  );
  return (
    <PanelPage title={words.jobs} actions={canCreate && newButton}>
      <p className="panel-intro">{words.jobsIntro}</p>
      <QueryResult query={query}>
        {({ pages }) => {
          const jobs = pages.flatMap((page) => page.jobs);
          if (jobs.length === 0) {
            return (
              <div className="panel-empty">
                <h2>{words.jobsEmpty}</h2>
                <p>{canCreate ? words.jobsEmptyText : words.jobsForMembers}</p>
              </div>
            );
          }
          return (
            <ul className="card rows-card" aria-label={words.jobs}>
              {[...jobs].sort(compareByWaiting).map((job) => (
                <JobRow key={job.id} job={job} isMine={job.person_id === me.person.id} all={showsAll} onChange={refresh} onEdit={() => setEdited(job)} />
              ))}
            </ul>
          );
        }}
      </QueryResult>
      <LoadMoreButton query={query} />
      {edited !== null && (
        <JobDialog
          job={edited === "new" ? null : edited}
          all={showsAll}
          onClose={() => setEdited(null)}
          onDone={() => {
            setEdited(null);
            void refresh();
          }}
        />
      )}
    </PanelPage>
  );
}

const isRunning = ({ last_run: run }: Job) => run !== null && (run.state === "queued" || run.state === "running");
const isWaiting = (job: Job) => job.state === "proposed" || job.has_proposed_change;

/** Puts what waits for the reader first; the rest stays in the order of the server. */
function compareByWaiting(a: Job, b: Job): number {
  return Number(isWaiting(b)) - Number(isWaiting(a));
}
