import type {
  AgentMessage,
  CallsMessage,
  DeliverMessage,
  LoadAnswerMessage,
  LocalMessage,
  RankMessage,
  SaveAnswerMessage,
  SessionCredentials,
  StartMessage,
} from '../../contracts/rank-protocol.js';
import { deferred } from '../shared/deferred.js';
import { Mailbox } from '../shared/mailbox.js';

/** A rank's end of the channel to its agent. */
export interface RankChannel {
  /** Resolves when the operating system has the message, so that a later exit cannot lose it. */
  send(message: RankMessage): Promise<void>;
  onMessage(handler: (message: AgentMessage | LocalMessage) => void): void;
  /** Calls the handler when the agent is gone. */
  onDisconnect(handler: () => void): void;
}

/** Channel of `child_process.fork`. */
export function processChannel(): RankChannel {
  return {
    send: (message) =>
      new Promise((resolve, reject) => {
        if (!process.send) return reject(new Error('a rank must be started by an agent'));
        process.send(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
      }),
    onMessage: (handler) =>
      process.on('message', (received) => {
        const message = received as AgentMessage | LocalMessage;
        if (message.kind === 'start') Object.assign(process.env, traceEnv(message));
        handler(message);
      }),
    onDisconnect: (handler) => process.on('disconnect', handler),
  };
}

/** Returns the variables that OpenTelemetry instrumentations read. */
function traceEnv({ trace: { traceparent, tracestate } }: StartMessage): NodeJS.ProcessEnv {
  return { TRACEPARENT: traceparent, ...(tracestate !== null && { TRACESTATE: tracestate }) };
}

/** Dispatches the agent's messages: promises for single events, fields for current values. */
export class Inbox {
  readonly started: Promise<StartMessage>;
  /** All bytes of a load are verified; one for each load. */
  readonly proceeds = new Mailbox<void>();
  readonly exit: Promise<void>;
  /** Flags that the agent passes to the steps. */
  flags = 0;
  /** Number of the newest save request. */
  saveRequest = 0;
  /** Work of a session, and answers to its `load_call`s and `save_call`s. */
  readonly calls = new Mailbox<CallsMessage>();
  readonly loadAnswers = new Mailbox<LoadAnswerMessage>();
  readonly saveAnswers = new Mailbox<SaveAnswerMessage>();

  /** Called with every message of the agent. */
  onAnyMessage: () => void = () => undefined;

  /** Newest credentials of the agent; null without a session. */
  private session: SessionCredentials | null = null;
  private deliver: ((message: DeliverMessage) => void) | null = null;
  private undelivered: DeliverMessage[] = [];

  constructor(channel: RankChannel) {
    const started = deferred<StartMessage>();
    const exit = deferred<void>();
    this.started = started.promise;
    this.exit = exit.promise;
    channel.onMessage((message) => {
      this.onAnyMessage();
      switch (message.kind) {
        case 'start':
          started.resolve(message);
          break;
        case 'credentials':
          this.session = message.credentials;
          break;
        case 'deliver':
          if (this.deliver) this.deliver(message);
          else this.undelivered.push(message);
          break;
        case 'flags':
          this.flags = message.flags;
          this.saveRequest = message.save_request;
          break;
        case 'calls':
          this.calls.put(message);
          break;
        case 'load_answer':
          this.loadAnswers.put(message);
          break;
        case 'save_answer':
          this.saveAnswers.put(message);
          break;
        case 'proceed':
          this.proceeds.put();
          break;
        case 'exit':
          exit.resolve();
          break;
      }
    });
  }

  /**
   * Returns a function for the newest credentials; null for a rank without a session. Call it after the start message.
   */
  credentials(): (() => SessionCredentials) | null {
    const first = this.session;
    return first && (() => this.session ?? first);
  }

  /** Passes every rendezvous key to the handler, first those that arrived before this call. */
  onDeliver(handler: (key: string, value: Uint8Array) => void): void {
    this.deliver = ({ key, value }) => handler(key, value);
    for (const message of this.undelivered) this.deliver(message);
    this.undelivered = [];
  }
}
