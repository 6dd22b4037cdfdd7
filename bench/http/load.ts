import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { median } from '../report.js';
import { HttpConnection, requestBytes } from './connection.js';

interface Load {
  /** Requested in turn. */
  urls: readonly string[];
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  /** Concurrent requests, each on its own persistent connection. */
  connections: number;
  seconds: number;
}

export interface LoadResult {
  per_second: number;
  p50_ms: number;
  p99_ms: number;
}

/** Measures a load of requests. A status of 300 or above ends the measurement with an error. */
export async function measureLoad(load: Load): Promise<LoadResult> {
  const { method, urls, headers, body } = load;
  const requests = urls.map((url) => requestBytes(method, url, headers, body));
  const opening = Array.from({ length: load.connections }, () => HttpConnection.open(urls[0] as string));
  const idle = await Promise.all(opening);
  const connections = [...idle];
  let turn = 0;
  const ask = async () => {
    const connection = idle.pop() as HttpConnection;
    await connection.ask(requests[turn++ % requests.length] as Buffer);
    idle.push(connection);
  };
  try {
    return await measureCalls(ask, load);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Runs `connections` concurrent calls repeatedly, after a warm-up of a fifth of the time. */
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

/** Percentiles of measured milliseconds. */
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

/** Sends one request and reads its whole answer. */
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
