import type { Machine } from './pod.js';

/** Cause for which a pod ended without a request of the autoscaler. */
export type EndCause =
  /** The agent ended by itself, without an error. */
  | 'completed'
  /** The agent ended with an error, or was killed for its memory. */
  | 'failed'
  /** Its node went to a pod of higher priority, or its node asked it to leave. */
  | 'preempted'
  /** Its node is gone, or shut down. */
  | 'node_failed'
  /** Deleted by another client. */
  | 'cancelled';

const REASONS: Record<string, EndCause> = {
  Evicted: 'preempted',
  Preempting: 'preempted',
  Terminated: 'node_failed',
  NodeLost: 'node_failed',
  NodeShutdown: 'node_failed',
  Shutdown: 'node_failed',
  NodeAffinity: 'failed',
};

/** Reasons of the condition DisruptionTarget, which newer clusters set before they delete a pod. */
const DISRUPTIONS: Record<string, EndCause> = {
  PreemptionByScheduler: 'preempted',
  EvictionByEvictionAPI: 'preempted',
  DeletionByTaintManager: 'node_failed',
  DeletionByPodGC: 'node_failed',
  TerminationByKubelet: 'preempted',
};

/** Returns the cause of the end by the last description of a pod. */
export function causeOf({ pod, phase }: Machine): EndCause {
  const { conditions = [], reason = '' } = pod.status;
  const target = conditions.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  const known = DISRUPTIONS[target?.reason ?? ''] ?? REASONS[reason];
  if (known) return known;
  if (pod.metadata.deletionTimestamp !== undefined || phase !== 'ended') return 'cancelled';
  return pod.status.phase === 'Succeeded' ? 'completed' : 'failed';
}
