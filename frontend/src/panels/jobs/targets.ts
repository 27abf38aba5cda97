/** Names the places that the answers of a job are sent to. */
import { getPlatformName } from "../../format/platforms";
import { words } from "../../words";
import type { Job, JobPreview, JobRun } from "./jobCalls";

const WITHOUT_CHATS = new Set(["web", "local", "api"]); // platforms on which a job is made in no chat

type Target = JobPreview["targets"][number];

/** Names a target of a job as it is now; the server's words name a chat, or say that it is no longer reachable. */
export function describeTarget({ name, words: text }: Target, job: Job | null): string {
  if (name === "local") return words.jobsTargetFile;
  if (name !== "origin") return text;
  if (job !== null && job.origin_session_id !== null) return words.jobsTargetConversation;
  return job === null || WITHOUT_CHATS.has(job.origin_platform) ? words.jobsTargetPage : text;
}

/** Names a target that can be chosen for a job, or was one. Without a job: for one that is made in this panel, in no conversation. */
export function describeOption(target: Target, job: Job | null): string {
  if (target.name !== "origin" || job === null) return describeTarget(target, job);
  return describeTarget({ ...target, words: words.jobsTargetChat(getPlatformName(job.origin_platform)) }, job);
}

/** Names where a message went. */
export function describeDelivered({ platform, target }: Pick<JobRun["deliveries"][number], "platform" | "target">): string {
  return target === "local" ? words.jobsTargetFile : `${getPlatformName(platform)} (${target})`;
}
