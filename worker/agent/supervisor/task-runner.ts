import type { Logger } from '../../../platform/logging/logging.js';
import { childEnv, needsCredentials } from '../../shared/child-env.js';
import type { ChildProcesses } from '../../shared/child-processes.js';
import { fromRankError } from '../../shared/errors.js';
import type {
  ServeInput,
  ServeMessage,
  TaskInput,
  TaskMessage,
  TaskProgress,
  TaskReply,
  TaskRequest,
  TaskResults,
} from '../../tasks/protocol.js';
import type { JobSession } from '../credentials/job-session.js';

export interface TaskOptions {
  signal: AbortSignal;
  /** Session of the child; null: credentials of this process. */
  session: JobSession | null;
  /** UUID of the GPU that CUDA shows the child; by default those of this process. */
  gpu?: string | null;
  log: Logger;
  onProgress?: (progress: TaskProgress) => void;
  /** Messages to and from a process that serves a model. */
  serving?: {
    /** Called with the function that sends input, when the process was started. */
    onStart(send: (input: ServeInput) => void): void;
    onMessage(message: ServeMessage): void;
  };
}

/**
 * Runs one task in a child process and waits for it. An aborted `signal` kills the child; an unkillable child does not
 * block.
 * @throws ZerofleetError error of the task; `internal_error` when it ended without a reply; the signal's reason
 */
export async function runTask<R extends TaskRequest>(
  processes: Pick<ChildProcesses, 'start' | 'kill'>,
  request: R,
  options: TaskOptions,
): Promise<TaskResults[R['kind']]> {
  options.signal.throwIfAborted();
  const reply = await forkTask(processes, request, options);
  options.signal.throwIfAborted();
  if (!reply.ok) throw fromRankError(reply.error);
  return reply.result as TaskResults[R['kind']];
}

const storeOf = (request: TaskRequest) => ('object_store' in request ? request.object_store : null);

function forkTask(
  processes: Pick<ChildProcesses, 'start' | 'kill'>,
  request: TaskRequest,
  { signal, session, gpu = null, log, onProgress, serving }: TaskOptions,
): Promise<TaskReply> {
  return new Promise((resolve) => {
    const child = processes.start('task', childEnv(needsCredentials(storeOf(request), session), gpu));
    let reply: TaskReply | null = null;
    let output = '';
    const kill = () => processes.kill(child, `${request.kind}`, finish);
    const send = (input: TaskInput) => void (child.connected && child.send(input, () => undefined));
    const unwatch = session?.watch((credentials) => send({ kind: 'credentials', credentials }));
    const finish = (fallback: string) => {
      unwatch?.();
      signal.removeEventListener('abort', kill);
      resolve(reply ?? { ok: false, error: { code: 'internal_error', message: fallback } });
    };
    signal.addEventListener('abort', kill, { once: true });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        log.info({ task: request.kind, output: String(text) }, 'task output');
        output = (output + String(text)).slice(-2000);
      });
    }
    child.on('message', (message: TaskMessage) => {
      if ('progress' in message) onProgress?.(message.progress);
      else if ('event' in message) serving?.onMessage(message);
      else reply = message;
    });
    child.on('error', (error) => finish(`${request.kind} could not be started: ${error.message}`));
    child.on('close', (code, by) =>
      finish(`${request.kind} ended with ${by ?? `code ${code}`}. ${output}`.trim()),
    );
    send(request);
    serving?.onStart((input) => send({ kind: 'serve_input', input }));
  });
}
