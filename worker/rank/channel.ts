import type {
  AgentMessage,
  DeliverMessage,
  LocalMessage,
  RankMessage,
  SessionCredentials,
  StartMessage,
} from '../../contracts/rank-protocol.js';
import { deferred } from '../common/deferred.js';

/** A rank's end of the channel to its agent. */
export interface RankChannel {
  /** Resolves when the message is handed to the operating system, so that an exit after it can't lose it. */
  send(message: RankMessage): Promise<void>;
  onMessage(handler: (message: AgentMessage | LocalMessage) => void): void;
  /** Called when the agent is gone. */
  onDisconnect(handler: () => void): void;
}

/** The channel that `child_process.fork` gave this process. */
export function processChannel(): RankChannel {
  return {
    send: (message) =>
      new Promise((resolve, reject) => {
        if (!process.send) return reject(new Error('a rank must be started by an agent'));
        process.send(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
      }),
    onMessage: (handler) =>
      process.on('message', (message) => handler(message as AgentMessage | LocalMessage)),
    onDisconnect: (handler) => process.on('disconnect', handler),
  };
}

/** Sorts the agent's messages into what the rank waits for and what it looks up. */
export class Inbox {
  readonly started: Promise<StartMessage>;
  readonly proceed: Promise<void>;
  readonly exit: Promise<void>;
  /** Bits that the agent wants passed to the steps. */
  flags = 0;
  /** Number of the newest request to save and go on. */
  save_request = 0;

  /** Called with everything that the agent says. */
  onHeard: () => void = () => undefined;

  /** The newest that the agent sent; null when it sent none. */
  private session: SessionCredentials | null = null;
  private deliver: ((message: DeliverMessage) => void) | null = null;
  private undelivered: DeliverMessage[] = [];

  constructor(channel: RankChannel) {
    const started = deferred<StartMessage>();
    const proceed = deferred<void>();
    const exit = deferred<void>();
    this.started = started.promise;
    this.proceed = proceed.promise;
    this.exit = exit.promise;
    channel.onMessage((message) => {
      this.onHeard();
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
          this.save_request = message.save_request;
          break;
        case 'proceed':
          proceed.resolve();
          break;
        case 'exit':
          exit.resolve();
          break;
      }
    });
  }

  /** The newest credentials, whenever it is called; null for a rank that has none of its own. To be called once it is started. */
  credentials(): (() => SessionCredentials) | null {
    const first = this.session;
    return first && (() => this.session ?? first);
  }

  /** Hands over every rendezvous key, those first that came before this call. */
  onDeliver(handler: (key: string, value: Uint8Array) => void): void {
    this.deliver = ({ key, value }) => handler(key, value);
    for (const message of this.undelivered) this.deliver(message);
    this.undelivered = [];
  }
}
