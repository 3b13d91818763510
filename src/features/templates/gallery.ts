// The six templates: what each assistant says, knows and may call, and what the test call asks.
import type { Given } from "#features/assistants/settings.ts";
import type { ToolFields } from "#features/tools/tools.ts";

export const TEMPLATE_NAMES = [
  "support", "appointments", "lead_qualification", "order_status", "survey", "website_faq",
] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

export interface Template {
  title: string;
  /** Shown to the person who chooses a template. */
  description: string;
  settings: Given;
  /** Questions and answers that its knowledgebase begins with; may be empty. */
  questions: readonly { question: string; answer: string }[];
  /** The tool without its endpoint; null: it has no tool. */
  tool: Pick<ToolFields, "name" | "description" | "method" | "timeoutS" | "schema"> | null;
  /** It answers from the pages of a website. */
  needsWebsite: boolean;
  /** The lines of the test call, which the server's built-in caller speaks. */
  lines: readonly string[];
}

const STYLE = "Be brief and friendly, ask one question at a time, and say so when you do not know.";
const HOURS = {
  question: "When are you open?",
  answer: "Monday to Friday from 9:00 to 18:00. (An example: write your own hours here.)",
};

export const TEMPLATES: Record<TemplateName, Template> = {
  support: {
    title: "Customer support",
    description: "Answers questions from a list you write, and takes a callback for the rest.",
    settings: {
      name: "Customer support",
      initial_message: "Hello, this is {{company}}. How can I help?",
      system_prompt: `You are the support desk of {{company}}. ${STYLE} Answer from the reference you are given. What is not in it, or what a person has to decide, you pass on: ask for a name and how to reach them.`,
    },
    questions: [
      HOURS,
      { question: "How do I return something?", answer: "Within 30 days, in its packaging. We send a label by e-mail. (An example.)" },
      { question: "How long does delivery take?", answer: "Two to three working days. (An example.)" },
    ],
    tool: null, needsWebsite: false,
    lines: ["Hello. How long does delivery take?", "And when are you open?", "Thank you, goodbye."],
  },
  appointments: {
    title: "Appointment desk",
    description: "Finds out who wants to come when and for what, and notes it after the call.",
    settings: {
      name: "Appointment desk",
      initial_message: "Hello, this is {{company}}. Would you like to make an appointment?",
      system_prompt: `You make appointments for {{company}}. ${STYLE} Find out the name, what it is about, a day and a time within opening hours, and a telephone number. Repeat them once and say that the appointment will be confirmed.`,
      post_call_evaluation: true,
      post_call_schema: [
        { name: "customer_name", type: "string", description: "Who wants to come" },
        { name: "wanted_time", type: "string", description: "The day and time they asked for" },
        { name: "agreed", type: "bool", description: "Whether an appointment was agreed on" },
      ],
    },
    questions: [
      HOURS, { question: "How long is an appointment?", answer: "About 30 minutes. (An example.)" },
    ],
    tool: null, needsWebsite: false,
    lines: ["I would like an appointment on Tuesday at ten.", "My name is Ada.", "Thank you, goodbye."],
  },
  lead_qualification: {
    title: "Lead qualification",
    description: "Asks what somebody needs, by when and for how much, and marks who is worth a call.",
    settings: {
      name: "Lead qualification",
      initial_message: "Hello, this is {{company}}. May I ask you three short questions?",
      system_prompt: `You qualify leads for {{company}}. ${STYLE} Find out what they need, by when, what it may cost, and who decides. Promise nothing; say that a colleague will be in touch.`,
      post_call_evaluation: true,
      post_call_schema: [
        { name: "need", type: "string", description: "What they need, in one sentence" },
        { name: "budget", type: "string", description: "What it may cost; empty: not said" },
        { name: "qualified", type: "bool", description: "Whether need, time and budget are known and fit" },
      ],
    },
    questions: [], tool: null, needsWebsite: false,
    lines: ["Yes, go on.", "We need twenty desks by May.", "About ten thousand dollars.", "Goodbye."],
  },
  order_status: {
    title: "Order status",
    description: "Asks your shop's own system where an order is, with a tool it may call.",
    settings: {
      name: "Order status",
      initial_message: "Hello, this is {{company}}. What is your order number?",
      system_prompt: `You tell customers of {{company}} where their order is. ${STYLE} Ask for the order number and call order_status with it. When the tool does not answer, say that the shop's system cannot be reached just now.`,
    },
    questions: [{ question: "How long does delivery take?", answer: "Two to three working days. (An example.)" }],
    tool: {
      name: "order_status",
      description: "Says where an order is. Call it once the customer has given the order number.",
      method: "GET", timeoutS: 10,
      schema: [{ name: "order_number", type: "string", description: "The order number as the customer said it" }],
    },
    needsWebsite: false,
    lines: ["Where is my order? The number is 1042.", "Thank you, goodbye."],
  },
  survey: {
    title: "Survey caller",
    description: "Calls people, asks three questions and fills in a form with the answers.",
    settings: {
      name: "Survey caller",
      type: "outbound",
      initial_message: "Hello, this is {{company}}. Do you have a minute for three questions?",
      system_prompt: `You do a survey for {{company}}. ${STYLE} Ask how satisfied they are from 1 to 5, what we should do better, and whether they would recommend us. Thank them and say goodbye. Whoever does not want to take part is thanked at once.`,
      post_call_evaluation: true,
      post_call_schema: [
        { name: "satisfaction", type: "string", description: "From 1 to 5; empty: not said" },
        { name: "wish", type: "string", description: "What we should do better" },
        { name: "recommends", type: "bool", description: "Whether they would recommend us" },
      ],
    },
    questions: [], tool: null, needsWebsite: false,
    lines: ["Yes.", "Four.", "Answer the phone sooner.", "Yes, I would. Goodbye."],
  },
  website_faq: {
    title: "Questions from a website",
    description: "Reads your website and answers from its pages, saying which one.",
    settings: {
      name: "Website questions",
      initial_message: "Hello! What would you like to know about {{company}}?",
      system_prompt: `You answer questions about {{company}} from its website. ${STYLE} Answer from the reference you are given alone, and name the page it is from.`,
    },
    questions: [], tool: null, needsWebsite: true,
    lines: ["Hello. What do you do?", "Where can I read more?", "Thank you, goodbye."],
  },
};
