/** Reasons for which a cluster starts no pods, in its own words. */
import type { LaunchProblem } from '../capacity/port.js';
import type { KubernetesError } from './errors.js';
import type { Machine } from './pod.js';

type Problem = Pick<LaunchProblem, 'code' | 'message'>;

/** States of a container whose image or configuration is wrong. */
const BROKEN = new Set([
  ...['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError'],
  ...['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'],
]);

/** Problem of a creation that the API server refuses: it names the quota, the role or the webhook. */
export function problemOfRefusal({ status, message }: KubernetesError): Problem {
  if (/exceeded quota/.test(message)) return { code: 'quota', message };
  // A refusal of a role names user and verb; other refusals with this status are those of admission.
  if (status === 401 || (status === 403 && /\bUser ".*" cannot /.test(message)))
    return { code: 'permission', message };
  return { code: 'configuration', message };
}

/** Problem of a pod that has not started; null for one that only takes its time. */
export function problemOfPending({ pod }: Machine): Problem | null {
  const waiting = pod.status.containerStatuses?.[0]?.state?.waiting;
  if (waiting && BROKEN.has(waiting.reason ?? ''))
    return { code: 'configuration', message: sentence(waiting.reason, waiting.message) };
  const scheduled = pod.status.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return null;
  // A gate is opened by a queue of the cluster such as Kueue's, when the pod has its turn.
  const code = scheduled.reason === 'SchedulingGated' ? 'quota' : 'no_capacity';
  return { code, message: sentence(scheduled.reason, scheduled.message) };
}

/** Problem of a pod that ended at its start: the end of its log. */
export function problemOfEnd({ name, pod }: Machine): Problem {
  const { exitCode, reason, message } = pod.status.containerStatuses?.[0]?.state?.terminated ?? {};
  const said = message?.trim().split('\n').at(-1) ?? pod.status.message;
  const what =
    exitCode === undefined ? sentence(pod.status.reason, undefined) : `${reason}, exit code ${exitCode}`;
  return {
    code: 'configuration',
    message: `the agent of the pod ${name} ended at its start (${what})${said ? `: ${said.slice(0, 500)}` : ''}`,
  };
}

const sentence = (reason = 'unknown', message: string | undefined) =>
  message ? `${reason}: ${message}` : reason;
