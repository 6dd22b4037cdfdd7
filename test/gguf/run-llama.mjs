/**
 * Runs GGUF files in llama.cpp. Arguments: the folder with the package node-llama-cpp, and a JSON file with
 * `RunRequest` (llama-cpp.ts). Prints JSON with `RunResult`.
 */
import { readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, file] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(
  pathToFileURL(join(folder, 'node_modules', 'node-llama-cpp', 'dist', 'index.js')).href
);
const { model: modelPath, lora, texts, prompts, max_tokens } = JSON.parse(readFileSync(file, 'utf8'));
const warnings = [];
const llama = await getLlama({
  gpu: false,
  // llama.cpp's threads wait for each other in loops, which takes minutes on a busy machine.
  maxThreads: 1,
  build: 'never',
  logLevel: LlamaLogLevel.warn,
  logger: (_, message) => warnings.push(message),
});
const model = await llama.loadModel({ modelPath });
// A cache of keys and values in fp32, as in training.
const context = await model.createContext({
  contextSize: Math.min(128, model.trainContextSize),
  threads: 1,
  flashAttention: false,
  experimentalKvCacheKeyType: 'F32',
  experimentalKvCacheValueType: 'F32',
  ...(lora ? { lora: { adapters: [{ filePath: lora }] } } : {}),
});
const sequence = context.getSequence();
const answers = [];
for (const prompt of prompts) {
  await sequence.clearHistory();
  const answer = [];
  for await (const token of sequence.evaluate(prompt, { temperature: 0 })) {
    answer.push(token);
    if (answer.length === max_tokens) break;
  }
  answers.push(answer);
}
const tokens = texts.map(({ text, special }) => model.tokenize(text, special));
const { bos, eos, eot } = model.tokens;
const shouldPrependBosToken = model.tokens.shouldPrependBosToken;
writeSync(1, JSON.stringify({ tokens, answers, bos, eos, eot, addsBos: shouldPrependBosToken, warnings }));
process.exit(0);
