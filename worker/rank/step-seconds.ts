import type { StepSeconds } from '../../contracts/index.js';

/** Rounds to microseconds, because every metric stores these values. */
export function roundedSeconds(seconds: StepSeconds): StepSeconds {
  const { total, data, forward, backward, exchange, optimizer, gather } = seconds;
  return {
    total: rounded(total),
    data: rounded(data),
    forward: rounded(forward),
    backward: rounded(backward),
    exchange: rounded(exchange),
    optimizer: rounded(optimizer),
    gather: rounded(gather),
  };
}

function rounded(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6;
}
