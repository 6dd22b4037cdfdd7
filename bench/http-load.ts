import { Agent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { median } from './report.js';

export interface Load {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  /** Requests under way at once, each on a connection of its own that stays. */
  connections: number;
  seconds: number;
}

export interface LoadResult {
  per_second: number;
  p50_ms: number;
  p99_ms: number;
}

/** Answers are good when their status is below 300; another ends the measurement. */
export async function measureLoad(load: Load): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  const ask = () => askOnce(agent, load);
  try {
    return await measureCalls(ask, load);
  } finally {
    agent.destroy();
  }
}

/** As many calls at once as `connections`, again and again, after a warm-up of a fifth of the time. */
export async function measureCalls(
  call: () => Promise<unknown>,
  { connections, seconds }: Pick<Load, 'connections' | 'seconds'>,
): Promise<LoadResult> {
  await callFor(call, connections, seconds / 5);
  const began = performance.now();
  const latencies = await callFor(call, connections, seconds);
  const took = (performance.now() - began) / 1000;
  return { per_second: Math.round(latencies.length / took), ...latencyOf(latencies) };
}

/** Of measured milliseconds. */
export function latencyOf(latencies: readonly number[]): Pick<LoadResult, 'p50_ms' | 'p99_ms'> {
  const sorted = [...latencies].sort((a, b) => a - b);
  const p99 = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
  return { p50_ms: round(median(sorted)), p99_ms: round(p99) };
}

async function callFor(
  call: () => Promise<unknown>,
  connections: number,
  seconds: number,
): Promise<number[]> {
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1000;
  const lane = async () => {
    for (let began = performance.now(); began < end; began = performance.now()) {
      await call();
      latencies.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  return latencies;
}

async function askOnce(agent: Agent, { url, method, headers, body }: Load): Promise<void> {
  const { status, text } = await ask(url, { agent, method, headers }, body);
  if (status >= 300) throw new Error(`${method} ${url} was answered with ${status}: ${text.slice(0, 500)}`);
}

/** One request, its whole answer. */
export function ask(
  url: string,
  options: RequestOptions,
  body?: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const onAnswer = (answer: IncomingMessage) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
      );
    };
    const request = httpRequest(url, options, onAnswer);
    request.on('error', reject);
    request.end(body);
  });
}

const round = (value: number) => Number(value.toFixed(2));
