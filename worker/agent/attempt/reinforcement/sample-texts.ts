import { type PromptRequest, ZerofleetError } from '../../../../contracts/index.js';
import { BadLine, LEARNED_ROLE } from '../../../../contracts/jsonl/fields.js';
import { type JsonlDocument, parseLine } from '../../../../contracts/jsonl/line.js';
import { ofLine, type TextRules, tokenizerOf } from '../../../../formats/encoding/encode-batch.js';
import { Detokenizer } from '../../../tasks/serve/detokenizer.js';
import { buildPrompt } from '../../../tasks/serve/prompt.js';

const NEWLINE = 0x0a;

export interface TextSetup extends TextRules {
  /** The dataset. */
  content: SharedArrayBuffer;
  /** Maximum tokens of a prompt. */
  prompt_tokens: number;
}

/** A prompt of the dataset. */
interface LinePrompt {
  /** Number of its line. */
  line: number;
  text: string;
  tokens: number[];
  /** Tokens that end a sample. */
  end_tokens: number[];
  /** Text that ends a sample; empty if there is none. */
  end_text: string;
  /** Fields of the line, for graders. */
  item: Record<string, unknown>;
}

interface DrawnSample {
  prompt: readonly number[];
  end_text: string;
  tokens: readonly number[];
  finish: 'end' | 'length';
}

/** A sample as graders read it. */
export interface SampleText {
  text: string;
  /** Number of its tokens up to its end. */
  tokens: number;
  /** True if it has no end. */
  truncated: boolean;
}

/** Prompts of a dataset, and texts of their samples. */
export class SampleTexts {
  private readonly tokenizer: ReturnType<typeof tokenizerOf>;
  private readonly content: Uint8Array;
  /** Of each line that is not blank: its number, and where it begins and ends. */
  private readonly lines: { number: number; begin: number; end: number }[] = [];

  constructor(private readonly setup: TextSetup) {
    this.tokenizer = tokenizerOf(setup);
    this.content = new Uint8Array(setup.content);
    let number = 1;
    for (let begin = 0; begin < this.content.length; number += 1) {
      const newline = this.content.indexOf(NEWLINE, begin);
      const end = newline < 0 ? this.content.length : newline;
      if (this.textOf({ begin, end }).trim() !== '') this.lines.push({ number, begin, end });
      begin = end + 1;
    }
  }

  /** Number of prompts. */
  get count(): number {
    return this.lines.length;
  }

  /** @throws ZerofleetError `dataset_line_invalid`, `prompt_too_long`, `chat_template_invalid`; it names the line */
  prompt(index: number): LinePrompt {
    const line = this.lines[index];
    if (line === undefined) throw new ZerofleetError('internal_error', `the dataset has no prompt ${index}`);
    const { number } = line;
    const text = this.textOf(line);
    const { prompt_tokens, chat_template, template_date } = this.setup;
    const rules = { chat_template, template_date, max_length: Number.POSITIVE_INFINITY };
    return ofLine(number, () => {
      const request = promptOf(parseLine(text));
      if (request.messages && chat_template === null)
        throw new BadLine('it has messages, and the job has no chat template; set data.chat_template');
      const built = buildPrompt(this.tokenizer, request, rules);
      const { tokens, end_tokens, end_text } = built;
      if (tokens.length > prompt_tokens)
        throw new ZerofleetError(
          'prompt_too_long',
          `the prompt has ${tokens.length} tokens; train.sequence_length − train.objective.max_tokens leaves room for ${prompt_tokens}`,
        );
      return { line: number, text: built.text, tokens, end_tokens, end_text, item: JSON.parse(text) };
    });
  }

  /** Returns the text of a sample: its end is no part of it. */
  sample({ prompt, end_text, tokens, finish }: DrawnSample): SampleText {
    const detokenizer = new Detokenizer(this.tokenizer, prompt);
    const shown = finish === 'end' ? tokens.slice(0, -1) : tokens;
    let text = '';
    for (const [i, token] of shown.entries()) {
      const from = Math.max(0, text.length - end_text.length);
      text += detokenizer.push(token);
      const at = end_text === '' ? -1 : text.indexOf(end_text, from);
      if (at >= 0) return { text: text.slice(0, at), tokens: i + 1, truncated: false };
    }
    text += detokenizer.end();
    return { text, tokens: tokens.length, truncated: finish === 'length' };
  }

  private textOf({ begin, end }: { begin: number; end: number }): string {
    return Buffer.from(this.content.subarray(begin, end)).toString('utf8');
  }
}

/** Returns the prompt of a line: what precedes its completion, or the last answer of its chat. */
function promptOf(document: JsonlDocument): PromptRequest {
  if ('text' in document)
    throw new BadLine('it has a "text", and the objective grpo needs "messages" or a "prompt"');
  const { tools, parallel_tool_calls } = document;
  const messages = 'messages' in document ? document.messages : document.prompt;
  if (typeof messages === 'string') return { prompt: messages };
  const last = messages.findLastIndex(({ role }) => role !== LEARNED_ROLE);
  if (last < 0) throw new BadLine('it has no message before those of the assistant');
  const request = {
    messages: messages.slice(0, last + 1),
    ...(tools !== null && { tools }),
    ...(parallel_tool_calls !== undefined && { parallel_tool_calls }),
  };
  return request as PromptRequest;
}
