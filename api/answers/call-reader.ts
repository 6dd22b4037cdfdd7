/** Calls of tools in the text of an answer, which grows. */
import type { CallFormat, ToolCallDelta } from '../../contracts/index.js';
import { GrowingJson } from './growing-json.js';

/** Characters between a name and its arguments. */
const MAX_BETWEEN = 64;
/** Characters of ids that some templates write. */
const ID_LENGTH = 9;

interface Read {
  text: string;
  tool_calls: ToolCallDelta[];
}

/**
 * Divides the text of an answer into text and calls. Text that may begin a call is held back. What is no call of a
 * known tool stays text. White space beside calls is left out.
 */
export class CallReader {
  /** Calls that were read. */
  numCalls = 0;
  private rest = '';
  /** White space at the end of the text until now. */
  private space = '';
  private call: GrowingCall | null = null;
  /** Text before `call`. */
  private mark = '';
  private state: 'text' | 'call' | 'behind';
  private added: Read = { text: '', tool_calls: [] };

  /** @param idOf id of a call by its number */
  constructor(
    private readonly format: CallFormat,
    private readonly names: readonly string[],
    private readonly idOf: (call: number) => string,
  ) {
    this.state = format.open === '' ? 'call' : 'text';
  }

  /** Takes more of the text. Returns what follows of text and calls. */
  push(text: string): Read {
    this.rest += text;
    while (this.rest !== '' && this.step()) {}
    return this.take();
  }

  /** Returns the text that was held back. */
  end(): Read {
    if (this.state === 'text') this.addText(this.rest);
    else if (this.state === 'call' && this.call?.name == null)
      this.addText(this.mark + (this.call?.raw ?? ''));
    if (this.numCalls === 0) this.added.text += this.space;
    return this.take();
  }

  private take(): Read {
    const { added } = this;
    this.added = { text: '', tool_calls: [] };
    return added;
  }

  /** @returns false if more text is needed */
  private step(): boolean {
    if (this.state === 'text') return this.readText();
    return this.state === 'call' ? this.readCall() : this.readBehind();
  }

  private readText(): boolean {
    const { open } = this.format;
    const at = open === '' ? -1 : this.rest.indexOf(open);
    if (at >= 0) {
      this.addText(this.rest.slice(0, at));
      this.beginCall(open, this.rest.slice(at + open.length));
      return true;
    }
    const numPending = beginningOf(open, this.rest);
    this.addText(this.rest.slice(0, this.rest.length - numPending));
    this.rest = this.rest.slice(this.rest.length - numPending);
    return false;
  }

  private beginCall(mark: string, rest: string): void {
    this.state = 'call';
    this.call = null;
    this.mark = mark;
    this.rest = rest;
  }

  private readCall(): boolean {
    if (this.call === null) {
      const text = this.rest.trimStart();
      this.mark += this.rest.slice(0, this.rest.length - text.length);
      this.rest = text;
      if (text === '') return false;
      this.call = new GrowingCall(this.format, this.names);
    }
    const { call, rest } = this;
    const isAnnounced = call.name !== null;
    call.push(rest);
    this.rest = '';
    if (call.isText) {
      this.addText(this.mark);
      this.rest = call.raw;
      this.state = 'text';
      this.call = null;
      return true;
    }
    if (call.name !== null) this.addCall(call, call.name, isAnnounced);
    if (call.end === null) return false;
    this.rest = rest.slice(call.end);
    this.state = 'behind';
    this.call = null;
    return true;
  }

  private addCall(call: GrowingCall, name: string, isAnnounced: boolean): void {
    if (!isAnnounced) {
      const index = this.numCalls++;
      this.space = '';
      const called = { name, arguments: '' };
      this.added.tool_calls.push({ index, id: this.idOf(index), type: 'function', function: called });
    }
    const text = call.takeArguments();
    if (text !== '') this.added.tool_calls.push({ index: this.numCalls - 1, function: { arguments: text } });
  }

  private readBehind(): boolean {
    const { close, separator } = this.format;
    const text = this.rest.trimStart();
    if (text === '') return false;
    if (separator !== null && text.startsWith(separator)) this.beginCall('', text.slice(separator.length));
    else if ([separator ?? '', close].some((mark) => mark.startsWith(text))) return false;
    else {
      this.state = 'text';
      if (close !== '' && text.startsWith(close)) this.rest = text.slice(close.length);
    }
    return true;
  }

  private addText(text: string): void {
    const all = this.space + text;
    const kept = all.trimEnd();
    this.added.text += kept;
    this.space = all.slice(kept.length);
  }
}

/** A call while it is written. */
class GrowingCall {
  /** The text until it is certain that this is a call. */
  raw = '';
  /** Null until it is certain that this is a call of a known tool. */
  name: string | null = null;
  /** Characters of the last `push` that belong to the call; null while it grows. */
  end: number | null = null;
  /** True if this is no call. */
  isText = false;
  private readonly json: GrowingJson;
  private hasHeader: boolean;

  constructor(
    format: CallFormat,
    private readonly names: readonly string[],
  ) {
    this.json = new GrowingJson({ name: format.name, value: format.arguments });
    this.hasHeader = format.name !== null;
  }

  push(text: string): void {
    if (this.name === null) this.raw += text;
    const { json } = this;
    const begin = this.hasHeader ? 0 : this.readHeader(text);
    if (begin === null) return;
    json.push(text.slice(begin));
    if (json.name !== null && !this.names.includes(json.name)) this.isText = true;
    else if (json.hasValue) this.name = json.name;
    const isOver = json.end !== null || json.hasFailed;
    if (isOver) this.end = json.end === null ? text.length : begin + json.end;
    this.isText ||= isOver && this.name === null;
  }

  /** Returns the text of the arguments since the last call. */
  takeArguments(): string {
    return this.json.takeValue();
  }

  /** Reads a name before its arguments. Returns the index of the arguments in the last `push`. */
  private readHeader(text: string): number | null {
    const at = this.raw.indexOf('{');
    const header = at < 0 ? this.raw : this.raw.slice(0, at);
    const [name = null] = this.names
      .filter((each) => header.startsWith(each) && isBetween(header.slice(each.length), at >= 0))
      .sort((a, b) => b.length - a.length);
    this.isText = name === null && (at >= 0 || !this.names.some((each) => each.startsWith(header)));
    if (name === null || at < 0) return null;
    this.hasHeader = true;
    this.json.name = name;
    return at - (this.raw.length - text.length);
  }
}

/** Returns whether a text can stand between a name and its arguments: some templates write an id there. */
function isBetween(text: string, isWhole: boolean): boolean {
  if (text.length > MAX_BETWEEN) return false;
  const [id = ''] = /^[A-Za-z0-9]*/.exec(text) ?? [];
  const isId =
    id.length === 0 || id.length === ID_LENGTH || (!isWhole && id.length < ID_LENGTH && id === text);
  return isId && !/^[_-]/.test(text);
}

/** Returns the length of the longest end of a text that begins `mark`. */
function beginningOf(mark: string, text: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length;
  return 0;
}
