// A small business's documents in every format, and questions that people would ask about them,
// each with words of the passage that answers it.
import { flow, makeDocx, makePdf } from "./documents.ts";

type Sections = [heading: string, ...paragraphs: string[]][];

const MANUAL: Sections = [
  ["First ride", "Before the first ride check that both quick releases are closed and that the handlebar does not turn against the wheel."],
  ["Tyre pressure", "Inflate city tyres to 4 bar and trekking tyres to 5 bar. The range is printed on the side wall of every tyre."],
  ["Brakes", "Replace brake pads that are thinner than two millimetres. Never oil the discs; clean them with alcohol."],
  ["Gears", "If the chain jumps, turn the barrel adjuster half a turn counterclockwise until it runs quietly."],
  ["Battery care", "Store the battery between 30 and 60 percent of its charge at room temperature. Do not charge it below freezing."],
  ["Charging", "A full charge takes four and a half hours. The lamp on the charger turns green when it is complete."],
  ["Range", "In eco mode one charge lasts for about 90 kilometres; in turbo mode expect 40."],
  ["Display errors", "Error E21 means that the speed sensor is misaligned. Error E30 means that the motor is too hot: let it cool for ten minutes."],
  ["Lights", "The front lamp is powered by the hub dynamo and keeps shining for three minutes after you stop."],
  ["Suspension", "Set the sag of the fork to a quarter of its travel with the rider seated."],
  ["Cleaning", "Never use a pressure washer near bearings or the motor. A bucket, a sponge and mild soap will do."],
  ["Lubrication", "Put one drop of oil on each link of the chain every 200 kilometres and wipe off the rest."],
  ["Child seats", "Only the rear rack carries a child seat; its limit is 27 kilograms."],
  ["Trailer", "The coupling for trailers fits the left side of the rear axle. Do not exceed 45 kilograms of load."],
];
const POLICY: Sections = [
  ["Rental agreement", "Every renter shows an identity card and leaves a deposit of 100 dollars, which is returned with the bicycle."],
  ["Prices", "City bikes cost 20 dollars a day, electric bikes 45 dollars, cargo bikes 60 dollars."],
  ["Late return", "A bicycle that comes back after closing time is charged half a day extra."],
  ["Damage", "Small scratches are free. The renter pays for repairs up to the amount of the deposit."],
  ["Theft", "Report a stolen bicycle to the police within 24 hours and bring us the report and both keys; the insurance then pays all but 150 dollars."],
  ["Cancellation", "Bookings can be cancelled free of charge until the evening before. After that the first day is billed."],
  ["Helmets and locks", "Helmets, locks and baskets are included in every rental."],
  ["Groups", "Groups of eight or more get one bicycle free and a guide on request."],
  ["Children", "Children under fourteen ride only together with an adult."],
  ["Delivery", "We bring rental bicycles to hotels inside the city for 10 dollars each way."],
  ["Opening hours", "The workshop is open Monday to Friday from 9:00 to 18:00 and Saturday from 10:00 to 14:00."],
  ["Payment", "We accept cash, cards and bank transfer, but no cheques."],
];
const STAFF: Sections = [
  ["Vacation", "Employees receive 25 days of paid vacation a year. Up to five of them may be carried over until the end of March."],
  ["Sick leave", "Call the manager before eight in the morning. A doctor's note is needed from the third day."],
  ["Overtime", "Hours beyond forty a week are paid one and a half times or taken as time off within two months."],
  ["Expenses", "Send receipts by the fifth of the following month. Travel by train is reimbursed in second class."],
  ["Working from home", "Office staff may work from home two days a week after their trial period."],
  ["Probation", "The trial period lasts three months with two weeks' notice on either side."],
  ["Tools", "Everyone keeps a personal set of tools; lost ones are replaced once a year."],
  ["Safety", "Wear goggles at the grinding machine and gloves when you handle solvents."],
  ["Fire", "In case of fire leave through the courtyard and meet at the fountain. Extinguishers hang beside each door."],
  ["Discount", "Employees buy at cost price plus ten percent, once a year also for a friend."],
  ["Pension", "The company pays four percent of the salary into a pension fund after one year."],
  ["Training", "Each mechanic attends two courses a year; the company pays fees and working time."],
];
const SHOP: Sections = [
  ["Shipping", "Orders over 50 dollars are shipped free. Parcels leave on the same day when they are ordered before noon."],
  ["Returns", "Send back anything unused within thirty days; the label is in the parcel. We refund to the same card."],
  ["Warranty", "Frames are guaranteed for ten years, parts for two years, batteries for one."],
  ["Gift cards", "Gift cards are valid for three years and can be spent in several steps."],
  ["Sizes", "Measure your inseam: times 0.66 gives the frame height of a city bike in centimetres."],
  ["Trade-in", "We take your old bicycle in part payment when you buy a new one for more than 500 dollars."],
  ["Newsletter", "Subscribers get a voucher of five dollars; leave at any time with one click."],
  ["Privacy", "We keep addresses only for as long as the law asks for invoices, which is seven years."],
  ["Instalments", "Pay in six monthly parts without interest for purchases from 300 dollars."],
  ["Pick-up", "Collect online orders at the counter after two hours; bring the number of your order."],
];

/** The same without their formats: by document, section by section. */
export const SECTIONS: [document: string, sections: Sections][] = [
  ["Owner's manual", MANUAL], ["Rental terms", POLICY], ["Staff handbook", STAFF], ["Web shop", SHOP],
];

const plain = (sections: Sections): string =>
  sections.map(([heading, ...text]) => `# ${heading}\n\n${text.join("\n\n")}`).join("\n\n");

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < 80) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

export interface CorpusDocument {
  name: string;
  type: "pdf" | "txt" | "docx" | "website";
  /** HTML for a website. */
  content: Buffer;
}

export function corpus(): CorpusDocument[] {
  const pages: Sections[] = [];
  for (let at = 0; at < MANUAL.length; at += 5) pages.push(MANUAL.slice(at, at + 5));
  const pdf = makePdf(pages.map((sections) => flow(sections.flatMap(([heading, ...text]) =>
    [{ heading, size: 16 }, ...text.flatMap(wrapped)]))));
  const docx = makeDocx(STAFF.flatMap(([heading, ...text]) =>
    [{ heading }, ...text.map((paragraph) => ({ text: paragraph }))]));
  const html = SHOP.map(([heading, ...text]) => `<h2>${heading}</h2><p>${text.join("</p><p>")}</p>`);
  return [
    { name: "Owner's manual", type: "pdf", content: pdf },
    { name: "Rental terms", type: "txt", content: Buffer.from(plain(POLICY)) },
    { name: "Staff handbook", type: "docx", content: docx },
    {
      name: "Web shop", type: "website",
      content: Buffer.from(`<html><head><title>Shop</title></head><body>${html.join("")}</body></html>`),
    },
  ];
}

export const QUESTIONS: [question: string, passage: string][] = [
  ["What pressure do I need in my tyres?", "4 bar"],
  ["When do I have to change the brake pads?", "two millimetres"],
  ["My chain keeps jumping, what can I do?", "barrel adjuster"],
  ["How should I store the battery over winter?", "30 and 60 percent"],
  ["How long does charging take?", "four and a half hours"],
  ["How far can I ride with one charge in eco mode?", "90 kilometres"],
  ["What does error E21 on the display mean?", "speed sensor"],
  ["The motor shows E30", "cool for ten minutes"],
  ["Does the light stay on when I stop?", "three minutes"],
  ["Can I use a pressure washer?", "mild soap"],
  ["How often should I oil the chain?", "200 kilometres"],
  ["What is the maximum weight for a child seat?", "27 kilograms"],
  ["Can I attach a trailer to the bike?", "left side of the rear axle"],
  ["How do I adjust the suspension fork?", "sag"],
  ["How much is the deposit?", "100 dollars"],
  ["How much does it cost to rent an electric bike?", "45 dollars"],
  ["What happens if I return the bicycle late?", "half a day extra"],
  ["Do I pay for scratches?", "scratches are free"],
  ["My rental bike was stolen, what now?", "police"],
  ["Can I cancel my booking for free?", "evening before"],
  ["Is a helmet included?", "included in every rental"],
  ["Do groups get a discount?", "one bicycle free"],
  ["Can my children ride alone?", "together with an adult"],
  ["Do you deliver bikes to my hotel?", "10 dollars each way"],
  ["Are you open on Saturday?", "10:00 to 14:00"],
  ["Can I pay by card?", "no cheques"],
  ["How many vacation days do employees have?", "25 days"],
  ["When do I need a doctor's note?", "third day"],
  ["How is overtime paid?", "one and a half times"],
  ["By when must receipts for expenses be sent?", "fifth of the following month"],
  ["May I work from home?", "two days a week"],
  ["How long is the trial period?", "three months"],
  ["Where do we meet when there is a fire?", "fountain"],
  ["What is the staff discount?", "cost price plus ten percent"],
  ["Does the company pay into a pension?", "four percent"],
  ["How many training courses do mechanics attend?", "two courses a year"],
  ["Is shipping free?", "over 50 dollars"],
  ["How many days do I have to send something back?", "thirty days"],
  ["How long is the warranty on a frame?", "ten years"],
  ["How long are gift cards valid?", "three years"],
  ["How do I find the right frame size?", "inseam"],
  ["Do you take my old bike in part payment?", "more than 500 dollars"],
  ["Can I pay in instalments?", "six monthly parts"],
  ["When can I pick up my online order?", "after two hours"],
  ["How long do you keep my address?", "seven years"],
];
