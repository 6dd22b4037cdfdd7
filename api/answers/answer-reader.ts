import { createHash } from 'node:crypto';
import type {
  AnswerChoice,
  AnswerDelta,
  SampleChoice,
  SampleDelta,
  SampleTask,
  ToolCall,
  ToolCallDelta,
} from '../../contracts/index.js';
import { CallReader } from './call-reader.js';
import { sampledTokens } from './logprobs.js';

/** Ids of nine letters and digits, which all chat templates take. */
const ID_LENGTH = 9;
const ID_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Answers of models in the form of the contract: with the calls of tools apart from the text. */
export class AnswerReader {
  private readonly readers = new Map<number, CallReader>();
  private digest: string | null = null;

  constructor(private readonly task: SampleTask) {}

  delta({ index, text, logprobs, call_format }: AnswerDelta): SampleDelta {
    const reader = call_format && this.readerOf(index, call_format);
    return deltaOf(index, reader ? reader.push(text) : { text, tool_calls: [] }, logprobs);
  }

  /** Returns what was held back at the end. */
  rest(): SampleDelta[] {
    return [...this.readers]
      .map(([index, reader]) => deltaOf(index, reader.end(), []))
      .filter(({ text }) => text !== '');
  }

  /** Returns a choice, of which `delta` may have read the text. */
  choice({ index, text, finish_reason, logprobs, call_format }: AnswerChoice): SampleChoice {
    const choice = { index, text, finish_reason, logprobs: sampledTokens(logprobs) };
    if (call_format === undefined) return choice;
    const reader = this.newReader(index, call_format);
    const [read, rest] = [reader.push(text), reader.end()];
    if (reader.numCalls === 0) return choice;
    return {
      ...choice,
      text: read.text + rest.text,
      tool_calls: joinedCalls(read.tool_calls),
      finish_reason: finish_reason === 'stop' ? 'tool_calls' : finish_reason,
    };
  }

  private readerOf(index: number, format: NonNullable<AnswerDelta['call_format']>): CallReader {
    const reader = this.readers.get(index) ?? this.newReader(index, format);
    this.readers.set(index, reader);
    return reader;
  }

  private newReader(index: number, format: NonNullable<AnswerDelta['call_format']>): CallReader {
    const names = this.task.tools.map(({ function: { name } }) => name);
    return new CallReader(format, names, (call) => this.idOf(index, call));
  }

  /** Returns an id that is a function of the request. */
  private idOf(index: number, call: number): string {
    const { messages, seed } = this.task;
    this.digest ??= createHash('sha256')
      .update(JSON.stringify([messages, seed]))
      .digest('hex');
    const bytes = createHash('sha256').update(`${this.digest} ${index} ${call}`).digest();
    return Array.from(
      bytes.subarray(0, ID_LENGTH),
      (byte) => ID_CHARACTERS[byte % ID_CHARACTERS.length],
    ).join('');
  }
}

function deltaOf(
  index: number,
  { text, tool_calls }: { text: string; tool_calls: ToolCallDelta[] },
  logprobs: AnswerDelta['logprobs'],
): SampleDelta {
  return {
    index,
    text,
    ...(tool_calls.length > 0 && { tool_calls }),
    logprobs: sampledTokens(logprobs),
  };
}

/** Joins the deltas of calls. */
export function joinedCalls(deltas: readonly ToolCallDelta[]): ToolCall[] {
  const calls: ToolCall[] = [];
  for (const { index, id = '', function: called } of deltas) {
    const { name = '', arguments: text } = called;
    calls[index] ??= { id, type: 'function', function: { name, arguments: '' } };
    calls[index].function.arguments += text;
  }
  return calls;
}
