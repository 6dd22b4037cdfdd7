/**
 * Reasons for which a group launches no instance: its recent scaling activities. EC2's answers stand in texts without a
 * code of their own, so they are recognized by their words.
 */
import type { LaunchProblem } from '../capacity/port.js';

/** A scaling activity of a group. */
export interface Activity {
  /** `Failed`, `Successful`, `InProgress`, … */
  status: string;
  /** Unix time in ms. */
  started_at: number;
  description: string;
  message: string;
}

type Code = LaunchProblem['code'];

const CODES: readonly [Code, RegExp][] = [
  ['quota', /vcpu ?limit|vcpu capacity than your current|max ?spot ?instance ?count|limit ?exceeded|quota/i],
  [
    'no_capacity',
    /insufficient ?\w* ?capacity|unfulfillable ?capacity|do(es)? not have sufficient|no spot capacity|capacity ?reservation.*(no|not|insufficient)/i,
  ],
  ['permission', /not authorized|unauthorized|access ?denied|invalid ?kms ?key|kms/i],
];

const MAX_MESSAGE = 500;

/**
 * Returns the reason of the newest failed launch after `since`, unless a later one succeeded.
 * @param activities newest first
 */
export function launchProblem(
  activities: readonly Activity[],
  since: number,
): Pick<LaunchProblem, 'code' | 'message'> | null {
  const launches = activities.filter(
    ({ description, started_at }) => /launching/i.test(description) && started_at >= since,
  );
  const [last] = launches.filter(({ status }) => status === 'Failed' || status === 'Successful');
  if (last?.status !== 'Failed') return null;
  const [code] = CODES.find(([, words]) => words.test(last.message)) ?? ['configuration' as const];
  return { code, message: last.message.slice(0, MAX_MESSAGE) };
}
